"""Values of command lines, refused before minutes are spent on them. Types for argparse."""
import argparse
import os
import re


def pattern(text):
    try:
        re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError("%r is no regular expression: %s" % (text, e))
    return text


def at_least(least, kind):
    """KIND's numbers from LEAST on."""
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            raise argparse.ArgumentTypeError("%r is no number from %s on" % (text, least))
        return value
    return parse


def folder(text):
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError("there is no folder %r" % text)
    return text


def build_folder(text):
    if not any(os.path.isfile(os.path.join(text, f, "metadb")) for f in ("", "src")):
        raise argparse.ArgumentTypeError("no metadb in %r: make build" % text)
    return text


def output(text):
    """A file that can be written; what it holds stays until there is more to say."""
    try:
        with open(text, "a", encoding="utf-8"):
            pass
    except OSError as e:
        raise argparse.ArgumentTypeError("%r cannot be written: %s" % (text, e.strerror))
    return text


def setting(text):
    if "=" not in text.strip("="):
        raise argparse.ArgumentTypeError("%r is not NAME=VALUE" % text)
    return text


def some_of(names):
    def parse(text):
        unknown = [n for n in text.split(",") if n not in names]
        if unknown:
            raise argparse.ArgumentTypeError("%r is none of %s" % (unknown[0], ", ".join(names)))
        return text
    return parse
