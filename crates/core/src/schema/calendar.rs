//! Dates and times of day: their texts, and days counted from 1970-01-01 (proleptic Gregorian calendar).

/// A calendar day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day {
    pub year: i32,
    pub month: u8,
    pub day: u8,
}

/// English month names, first three letters.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Days of a month; 0 if the month is not valid.
pub(crate) fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Parses `YYYYMMDD`, `YYYY-MM-DD` or `YYYY-DDD` (the day of the year, always three digits, because two digits mean a
/// month elsewhere).
pub(crate) fn date(text: &str) -> Option<Day> {
    let b = text.as_bytes();
    if b.len() == 8 && b[4] == b'-' {
        return ordinal(text.get(0..4)?, text.get(5..8)?);
    }
    let (year, month, day) = match b.len() {
        8 => (&text.get(0..4)?, &text.get(4..6)?, &text.get(6..8)?),
        10 if b[4] == b'-' && b[7] == b'-' => (&text.get(0..4)?, &text.get(5..7)?, &text.get(8..10)?),
        _ => return None,
    };
    let year = i32::try_from(digits(year)?).ok()?;
    let month = u8::try_from(digits(month)?).ok()?;
    let day = u8::try_from(digits(day)?).ok()?;
    (year > 0 && day > 0 && day <= days_in_month(year, month)).then_some(Day { year, month, day })
}

/// A climatological date, which has no year: `MMDD` from `jan-15` or `0115`, `MM00` from `jan` or `0100`.
pub(crate) fn climatology(text: &str) -> Option<String> {
    let (month, day) = match (text.split_once('-'), text.len()) {
        (Some((name, day)), _) => (named(name)?, u8::try_from(digits(day).filter(|day| *day > 0)?).ok()?),
        (None, 4) if text.bytes().all(|b| b.is_ascii_digit()) => {
            let number = digits(text)?;
            (u8::try_from(number / 100).ok()?, u8::try_from(number % 100).ok()?)
        }
        (None, _) => (named(text)?, 0),
    };
    // A leap year, so that 0229 is a valid day.
    let last = days_in_month(2000, month);
    (last > 0 && day <= last).then(|| format!("{month:02}{day:02}"))
}

/// A month by its English name.
fn named(text: &str) -> Option<u8> {
    month(text).filter(|_| digits(text).is_none())
}

/// A day from its year and its number in the year.
fn ordinal(year: &str, number: &str) -> Option<Day> {
    let year = i32::try_from(digits(year)?).ok().filter(|year| *year > 0)?;
    let first = Day { year, month: 1, day: 1 }.number();
    let after = i64::from(digits(number)?).checked_sub(1).filter(|n| *n >= 0)?;
    Day::from_number(first + after).filter(|day| day.year == year)
}

/// The number of days before today in `0`, `-1`, `-30`; `None` for other text.
pub(crate) fn relative(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(days) => digits(days).map(|days| -i64::from(days)),
        None => (text == "0").then_some(0),
    }
}

impl Day {
    /// The day in UTC at a time in nanoseconds since 1970-01-01.
    pub(crate) fn at(nanoseconds: i64) -> Option<Day> {
        Day::from_number(nanoseconds.div_euclid(86_400_000_000_000))
    }

    /// `YYYYMMDD`.
    pub(crate) fn text(self) -> String {
        format!("{:04}{:02}{:02}", self.year, self.month, self.day)
    }

    /// Days since 1970-01-01. The year counts from March, so that a leap day is its last day.
    pub(crate) fn number(self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        365 * y + y.div_euclid(4) - y.div_euclid(100)
            + y.div_euclid(400)
            + (153 * m + 2) / 5
            + i64::from(self.day)
            - 719_469
    }

    /// The day of a number; `None` outside the years 1 to 9999.
    pub(crate) fn from_number(number: i64) -> Option<Day> {
        if !(-719_162..=2_932_896).contains(&number) {
            return None;
        }
        let mut year = i32::try_from(1970 + number.div_euclid(if number < 0 { 365 } else { 366 })).ok()?;
        let start = |year: i32| Day { year, month: 1, day: 1 }.number();
        while year < 9999 && start(year + 1) <= number {
            year += 1;
        }
        let mut rest = u16::try_from(number - start(year)).ok()?;
        let mut month = 1u8;
        while rest >= u16::from(days_in_month(year, month)) {
            rest -= u16::from(days_in_month(year, month));
            month += 1;
        }
        Some(Day { year, month, day: u8::try_from(rest).ok()? + 1 })
    }
}

/// A month by number or English name ("nov", "november").
pub(crate) fn month(text: &str) -> Option<u8> {
    if let Some(number) = digits(text) {
        return u8::try_from(number).ok().filter(|m| text.len() <= 2 && (1..=12).contains(m));
    }
    const FULL: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let lower = text.to_ascii_lowercase();
    let at = MONTHS.iter().position(|m| *m == lower).or_else(|| FULL.iter().position(|m| *m == lower))?;
    u8::try_from(at + 1).ok()
}

/// Minutes of a time of day: `H`, `HH`, `HMM`, `HHMM`, `HHMMSS`, `H:MM`, `HH:MM:SS`; `None` if seconds are left over.
pub(crate) fn time_of_day(text: &str) -> Option<u16> {
    let (hour, minute, second) = if text.contains(':') {
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() > 3 || parts.iter().skip(1).any(|p| p.len() != 2) || parts[0].len() > 2 {
            return None;
        }
        (digits(parts[0])?, digits(parts[1])?, parts.get(2).map_or(Some(0), |s| digits(s))?)
    } else {
        let number = digits(text)?;
        match text.len() {
            1 | 2 => (number, 0, 0),
            3 | 4 => (number / 100, number % 100, 0),
            6 => (number / 10_000, number / 100 % 100, number % 100),
            _ => return None,
        }
    };
    if hour > 23 || minute > 59 || second != 0 {
        return None;
    }
    u16::try_from(hour * 60 + minute).ok()
}

/// Formats minutes as `HHMM`.
pub(crate) fn time_text(minutes: u16) -> String {
    format!("{:02}{:02}", minutes / 60, minutes % 60)
}

/// A number of at most nine decimal digits without any other character.
pub(crate) fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 9 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
