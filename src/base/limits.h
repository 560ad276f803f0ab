/* base/limits.h — every bound by its name. A loop, queue or buffer whose size a client or the
 * disk can choose is bounded by one of these. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* names and values */
#define LIMIT_NAME_BYTES 255u
#define LIMIT_ATTR_BYTES (64u * 1024u)
#define LIMIT_KV_VALUE_BYTES (1024u * 1024u)
#define LIMIT_KEY_BYTES 1024u /* of kv and object keys, before encoding */
#define LIMIT_PATH_BYTES 4096u
#define LIMIT_PATH_DEPTH 256u /* components of a path, steps of an ancestor walk */
#define LIMIT_IDENTIFIER_BYTES 63u

/* statements */
#define LIMIT_STATEMENT_ROWS 4096u /* rows of one INSERT, keys of one IN list */
#define LIMIT_PARAMS 65535u
#define LIMIT_SQL_FAST_BYTES (16u * 1024u) /* longer texts leave the reactor */
#define LIMIT_SQL_PARSE_BYTES (1024u * 1024u)
#define LIMIT_SQL_DEPTH 100u  /* parentheses, brackets, CASE */
#define LIMIT_SQL_CHAIN 2000u /* tokens without a comma */
#define LIMIT_LITERALS 16384u
#define LIMIT_COLUMNS 24u     /* of a stored table */
#define LIMIT_PROJECTION 256u /* output columns of a pattern */

/* wire */
#define LIMIT_STARTUP_BYTES 10000u
#define LIMIT_LOGIN_BYTES 65535u /* of a message before the client has proved who it is */
#define LIMIT_SMALL_MESSAGE_BYTES 10000u
#define LIMIT_MESSAGE_BYTES (64u * 1024u * 1024u)

/* between nodes: a command with what goes around it fits into a frame */
#define LIMIT_PEER_PAYLOAD_BYTES (12u * 1024u * 1024u)
#define LIMIT_PEER_FRAME_BYTES (16u * 1024u * 1024u)

/* log and commands */
#define LIMIT_COMMAND_BYTES (8u * 1024u * 1024u)

/* transactions */
#define LIMIT_TXN_MS 5000u
#define LIMIT_TXN_WRITES 100000u
#define LIMIT_SAVEPOINTS 4096u

#endif
