/*
 * planner/calendar.h — proleptic Gregorian dates and days since 1970-01-01, for any year.
 */
#ifndef PLANNER_CALENDAR_H
#define PLANNER_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

/* Years count from a March, so that the leap day is the last of its year; eras are 400 years. */
static inline int64_t calendar_days(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline void calendar_date(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * m + 2) / 5) + 1;
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

static inline bool calendar_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static inline int calendar_month_days(int64_t year, int month)
{
    return month == 2 ? 28 + calendar_leap(year) : 30 + ((month + (month > 7)) & 1);
}

/* 0 = Sunday. */
static inline int calendar_weekday(int64_t days)
{
    return (int)(((days + 4) % 7 + 7) % 7);
}

#endif
