/* Messages between threads: all arrive, in order per sender; a sleeping loop is woken. */
#include "lib/test.h"

#include "base/compiler.h"
#include "base/loop_internal.h"
#include "base/mailbox.h"
#include <pthread.h>
#include <stdatomic.h>

#define SENDERS 4
#define MESSAGES 20000

struct message {
    struct mail mail;
    unsigned sender, number;
};

static struct loop *l;
static struct mailbox *box;
static unsigned next_number[SENDERS], received, turns;

static int setup(void **state)
{
    (void)state;
    l = loop_new();
    box = mailbox_new(l);
    memset(next_number, 0, sizeof next_number);
    received = turns = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mailbox_free(box);
    loop_free(l);
    return 0;
}

static void deliver_in_order(struct mail *mail)
{
    struct message *m = CONTAINER_OF(mail, struct message, mail);
    assert_int_equal(m->number, next_number[m->sender]);
    next_number[m->sender]++;
    free(m);
    if (++received == SENDERS * MESSAGES)
        loop_stop(l);
}

static void *send_all(void *arg)
{
    unsigned sender = *(unsigned *)arg;
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct message *m = malloc(sizeof *m);
        assert_non_null(m);
        *m = (struct message){.mail.deliver = deliver_in_order, .sender = sender, .number = i};
        mailbox_send(box, &m->mail);
    }
    return NULL;
}

/* If a wake-up were lost the loop would sleep for ever and the test's time limit end it. */
static void every_message_of_every_sender_arrives_in_order(void **state)
{
    (void)state;
    pthread_t threads[SENDERS];
    unsigned ids[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, &ids[i]), 0);
    }
    loop_run(l);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(received, SENDERS * MESSAGES);
}

static _Atomic bool answered;

static void answer(struct mail *mail)
{
    (void)mail;
    received++;
    atomic_store(&answered, true);
}

static void stop_loop(struct mail *mail)
{
    (void)mail;
    loop_stop(l);
}

/* One message at a time, each to a loop that has nothing else to do. */
static void *ping(void *arg)
{
    struct mail *stop = arg;
    static struct mail m;
    for (unsigned i = 0; i < 500; i++) {
        m = (struct mail){.deliver = answer};
        atomic_store(&answered, false);
        mailbox_send(box, &m);
        while (!atomic_load(&answered))
            sched_yield();
    }
    mailbox_send(box, stop);
    return NULL;
}

static void a_sleeping_loop_is_woken_each_time(void **state)
{
    (void)state;
    struct mail stop = {.deliver = stop_loop};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ping, &stop), 0);
    loop_run(l);
    pthread_join(thread, NULL);
    assert_int_equal(received, 500);
}

static void count_turn(void *arg)
{
    (void)arg;
    turns++;
}

static void count_message(struct mail *mail)
{
    (void)mail;
    received++;
}

/* A hundred messages before the loop runs: one wake-up, so one turn delivers them all. */
static void one_turn_takes_the_whole_batch(void **state)
{
    (void)state;
    static struct mail mails[100];
    struct mail stop = {.deliver = stop_loop};
    struct loop_turn *turn = loop_turn_new(l, count_turn, NULL);
    for (unsigned i = 0; i < 100; i++) {
        mails[i].deliver = count_message;
        mailbox_send(box, &mails[i]);
    }
    mailbox_send(box, &stop);
    loop_run(l);
    assert_int_equal(received, 100);
    assert_int_equal(turns, 1);
    loop_turn_free(turn);
}

static struct mail echo;
static unsigned turn_of_echo;

static void note_turn(struct mail *mail)
{
    (void)mail;
    turn_of_echo = turns;
    loop_stop(l);
}

static void send_echo(struct mail *mail)
{
    (void)mail;
    echo.deliver = note_turn;
    mailbox_send(box, &echo);
}

/* What a delivery sends belongs to the next turn: a chain of messages cannot hold a turn open. */
static void a_message_sent_while_delivering_waits_for_the_next_turn(void **state)
{
    (void)state;
    struct mail first = {.deliver = send_echo};
    struct loop_turn *turn = loop_turn_new(l, count_turn, NULL);
    mailbox_send(box, &first);
    loop_run(l);
    assert_int_equal(turn_of_echo, 1);
    loop_turn_free(turn);
}

static void freeing_delivers_what_is_left(void **state)
{
    (void)state;
    struct mailbox *other = mailbox_new(l);
    struct mail m = {.deliver = count_message};
    mailbox_send(other, &m);
    mailbox_free(other);
    assert_int_equal(received, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_message_of_every_sender_arrives_in_order),
        T(a_sleeping_loop_is_woken_each_time),
        T(one_turn_takes_the_whole_batch),
        T(a_message_sent_while_delivering_waits_for_the_next_turn),
        T(freeing_delivers_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
