/*
 * base/tsan.h — tells ThreadSanitizer about an order that liburcu makes with assembly it cannot
 * see.
 *
 * A release on an address happens before every later acquire on the same address. Nothing outside
 * ThreadSanitizer builds. Used by rcu.c and mailbox.c only.
 */
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#if defined(__SANITIZE_THREAD__)
#define BASE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BASE_TSAN 1
#endif
#endif

#ifdef BASE_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define TSAN_ACQUIRE(addr) __tsan_acquire(addr)
#define TSAN_RELEASE(addr) __tsan_release(addr)
#else
#define TSAN_ACQUIRE(addr) ((void)(addr))
#define TSAN_RELEASE(addr) ((void)(addr))
#endif

#endif
