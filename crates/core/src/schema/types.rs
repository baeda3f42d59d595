//! Types of keywords: they turn a text into the canonical value of a key.
//!
//! Invariant: `canonical` of a canonical text gives the same value, and two values have equal texts if and only if
//! they are equal. A text that a type cannot keep is refused, never changed.

use std::sync::Arc;

use super::param::Param;
use super::words::Vocabulary;
use super::{calendar, number, param, step};
use crate::key::KeyValue;
use crate::{Code, Error, Result};

/// The type of a keyword, by its name in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeywordType {
    /// Any text, exactly as given (`Text`, FDB's `Default`).
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A decimal number of any length; canonical without superfluous zeros.
    Double,
    /// A decimal number if it is one, otherwise text.
    Mixed,
    /// A day: `YYYYMMDD`.
    Date,
    /// A time of day: `HHMM`.
    Time,
    /// A forecast step or span of steps: `6`, `30m`, `0-24`.
    Step,
    /// An experiment version, padded with zeros to four characters.
    Expver,
    /// A parameter: number, `130.128` or a name in ECMWF's table.
    Param,
    /// A parameter by number only.
    ParamId,
    /// The year; also taken from a date.
    Year,
    /// The month 1-12; also by name, also taken from a date.
    Month,
    /// The month of a date, two digits.
    MonthOfDate,
    /// `YYYYMM`; also taken from a date.
    YearMonth,
    /// `MMDD`; also taken from a date.
    ClimateDaily,
    /// The month 1-12 of a climatology; also by name, also taken from a date.
    ClimateMonthly,
    /// The first three characters.
    First3,
    /// A grid, with `/` written as `+`.
    Grid,
    /// A keyword whose value is dropped.
    Ignore,
    /// A word of MARS, in lower case (`Class`, `Type`, `Stream`, `Levtype` ...).
    Word(Vocabulary),
}

/// A value for tables and Arrow columns.
#[derive(Debug, Clone, PartialEq)]
pub enum Typed {
    /// An absent keyword.
    Absent,
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A calendar day.
    Date {
        /// Year, 1 to 9999.
        y: i32,
        /// Month, 1 to 12.
        m: u8,
        /// Day of the month.
        d: u8,
    },
    /// Text.
    Text(Arc<str>),
}

impl KeywordType {
    /// Every type with its name in a schema.
    pub const ALL: [(&'static str, KeywordType); 34] = [
        ("Text", KeywordType::Text),
        ("Default", KeywordType::Text),
        ("Integer", KeywordType::Integer),
        ("Double", KeywordType::Double),
        ("Mixed", KeywordType::Mixed),
        ("Date", KeywordType::Date),
        ("Time", KeywordType::Time),
        ("Step", KeywordType::Step),
        ("Expver", KeywordType::Expver),
        ("Param", KeywordType::Param),
        ("ParamID", KeywordType::ParamId),
        ("Year", KeywordType::Year),
        ("Month", KeywordType::Month),
        ("MonthOfDate", KeywordType::MonthOfDate),
        ("YearMonth", KeywordType::YearMonth),
        ("ClimateDaily", KeywordType::ClimateDaily),
        ("ClimateMonthly", KeywordType::ClimateMonthly),
        ("First3", KeywordType::First3),
        ("Grid", KeywordType::Grid),
        ("Ignore", KeywordType::Ignore),
        ("Class", KeywordType::Word(Vocabulary::Class)),
        ("Type", KeywordType::Word(Vocabulary::Type)),
        ("Stream", KeywordType::Word(Vocabulary::Stream)),
        ("Levtype", KeywordType::Word(Vocabulary::Levtype)),
        ("Domain", KeywordType::Word(Vocabulary::Domain)),
        ("Model", KeywordType::Word(Vocabulary::Model)),
        ("Origin", KeywordType::Word(Vocabulary::Origin)),
        ("Product", KeywordType::Word(Vocabulary::Product)),
        ("Section", KeywordType::Word(Vocabulary::Section)),
        ("Stattype", KeywordType::Word(Vocabulary::Stattype)),
        ("Timespan", KeywordType::Word(Vocabulary::Timespan)),
        ("Activity", KeywordType::Word(Vocabulary::Activity)),
        ("Experiment", KeywordType::Word(Vocabulary::Experiment)),
        ("Resolution", KeywordType::Word(Vocabulary::Resolution)),
    ];

    /// The type with this name in a schema.
    pub fn parse(word: &str) -> Option<KeywordType> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, t)| *t)
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, t)| *t == self).map_or("Text", |(name, _)| name)
    }

    /// The canonical value of `text`. `keyword` only appears in the message.
    pub fn canonical(self, keyword: &str, text: &str) -> Result<KeyValue> {
        if text.is_empty() {
            return Err(Code::KeywordValue
                .error(format!("{keyword} has an empty value"))
                .with_hint(format!("leave {keyword} out, or give None, if the field has none")));
        }
        self.read(text).ok_or_else(|| self.refuse(keyword, text))
    }

    /// A canonical value for tables, with numbers as numbers and days as days. A step in hours is a whole number, a
    /// shorter one a float, and a span of steps text.
    pub fn typed(self, value: &KeyValue) -> Typed {
        match value {
            KeyValue::Absent => Typed::Absent,
            KeyValue::Int(i) => Typed::Int(*i),
            KeyValue::Real(x, _) => Typed::Float(*x),
            KeyValue::Text(text) if self == KeywordType::Date => match calendar::date(text) {
                Some(day) => Typed::Date { y: day.year, m: day.month, d: day.day },
                None => Typed::Text(text.clone()),
            },
            KeyValue::Span { text, .. } => match step::span(text) {
                Some((start, end)) if start == end && start % 3_600 == 0 => Typed::Int(start / 3_600),
                Some((start, end)) if start == end => Typed::Float(start as f64 / 3_600.0),
                _ => Typed::Text(text.clone()),
            },
            KeyValue::Text(text) => Typed::Text(text.clone()),
        }
    }

    /// The words that the type accepts, if it has a vocabulary.
    pub fn words(self) -> Option<&'static [&'static str]> {
        match self {
            KeywordType::Word(vocabulary) => Some(vocabulary.words()),
            _ => None,
        }
    }

    /// Whether `0` and `-1` in a request mean today and yesterday.
    pub(crate) fn takes_relative_days(self) -> bool {
        use KeywordType as T;
        matches!(self, T::Date | T::YearMonth | T::ClimateDaily | T::ClimateMonthly)
    }

    /// Whether `all` and `off` are words of the language rather than values.
    pub(crate) fn is_closed(self) -> bool {
        use KeywordType as T;
        !matches!(self, T::Text | T::Mixed | T::First3 | T::Grid | T::Ignore)
    }

    /// The keyword of the date of which this type is a part, if it is one; so a schema may have `year: Year` and take
    /// it from `date`.
    pub(crate) fn part_of_date(self) -> Option<&'static str> {
        match self {
            KeywordType::Year => Some("year"),
            KeywordType::Month | KeywordType::MonthOfDate => Some("month"),
            _ => None,
        }
    }

    fn read(self, text: &str) -> Option<KeyValue> {
        let as_text = |s: &str| Some(KeyValue::Text(s.into()));
        let whole = |n: u32| Some(KeyValue::Int(i64::from(n)));
        match self {
            KeywordType::Text => as_text(text),
            KeywordType::Integer => text.parse().ok().map(KeyValue::Int),
            KeywordType::Double => real(text),
            KeywordType::Mixed => real(text).or_else(|| as_text(text)),
            KeywordType::Date => match calendar::date(text) {
                Some(day) => as_text(&day.text()),
                None => as_text(&calendar::climatology(text)?),
            },
            KeywordType::Time => as_text(&calendar::time_text(calendar::time_of_day(text)?)),
            KeywordType::Step => {
                let (start, end) = step::span(text)?;
                Some(step_value(start, end))
            }
            KeywordType::Expver => as_text(&format!("{text:0>4}")),
            KeywordType::Param => match param::read(text)? {
                Param::Number(number) => Some(KeyValue::Int(number)),
                Param::Foreign(text) => as_text(&text),
            },
            KeywordType::ParamId => whole(calendar::digits(text)?),
            KeywordType::Year => match calendar::date(text) {
                Some(day) => Some(KeyValue::Int(i64::from(day.year))),
                None => whole(calendar::digits(text).filter(|y| (1..=9999).contains(y))?),
            },
            KeywordType::Month | KeywordType::ClimateMonthly => whole(u32::from(month(text)?)),
            KeywordType::MonthOfDate => as_text(&format!("{:02}", month(text)?)),
            KeywordType::YearMonth => match calendar::date(text) {
                Some(day) => as_text(&day.text()[..6]),
                None => {
                    let number = calendar::digits(text).filter(|_| text.len() == 6)?;
                    ((1..=12).contains(&(number % 100)) && number >= 101).then(|| as_text(text))?
                }
            },
            KeywordType::ClimateDaily => match calendar::date(text) {
                Some(day) => as_text(&day.text()[4..]),
                None => {
                    let number = match text.split_once('-') {
                        Some((month, day)) => {
                            u32::from(calendar::month(month)?) * 100 + calendar::digits(day)?
                        }
                        None => calendar::digits(text).filter(|_| text.len() == 4)?,
                    };
                    // A leap year, so that 0229 is a valid day.
                    let (month, day) = (u8::try_from(number / 100).ok()?, number % 100);
                    let last = u32::from(calendar::days_in_month(2000, month));
                    ((1..=last).contains(&day)).then(|| as_text(&format!("{number:04}")))?
                }
            },
            KeywordType::First3 => as_text(&text.chars().take(3).collect::<String>()),
            KeywordType::Grid => as_text(&text.replace('/', "+")),
            KeywordType::Ignore => Some(KeyValue::Absent),
            KeywordType::Word(vocabulary) => as_text(&vocabulary.canonical(text)?),
        }
    }

    fn refuse(self, keyword: &str, text: &str) -> Error {
        let shown: String = text.chars().take(60).collect();
        let expected = match self {
            KeywordType::Integer => "a whole number between -2^63 and 2^63-1",
            KeywordType::Double => "a finite decimal number",
            KeywordType::Date => "a date: YYYYMMDD or YYYY-MM-DD, or jan-15 or jan in a climatology",
            KeywordType::Time => "a time of day without seconds: HH, HHMM or HH:MM",
            KeywordType::Step => {
                "a step in hours (6, -6), minutes (30m), seconds (15s), days (2d), or a span (0-24, 30m-1)"
            }
            KeywordType::ParamId => "a parameter number",
            KeywordType::Year => "a year of four digits or a date",
            KeywordType::Month | KeywordType::MonthOfDate | KeywordType::ClimateMonthly => {
                "a month (1 to 12, or jan to dec) or a date"
            }
            KeywordType::YearMonth => "a month YYYYMM or a date",
            KeywordType::ClimateDaily => "a day MMDD (or jan-15) or a date",
            KeywordType::Param => "a parameter of ECMWF's table",
            KeywordType::Word(_) => "a MARS word for it",
            _ => "a value",
        };
        let error = Code::KeywordValue.error(format!("{keyword}={shown:?} is not {expected}"));
        if self.takes_relative_days() && calendar::relative(text).is_some() {
            return error.with_hint("requests accept days relative to today; a key needs the day itself");
        }
        match self {
            KeywordType::Word(vocabulary) => return error.with_hint(vocabulary.hint(text)),
            KeywordType::Param => return error.with_hint(param::hint(text)),
            _ => {}
        }
        match (self, text.parse::<f64>()) {
            (KeywordType::Integer, Ok(x)) if x.fract() == 0.0 && x.abs() < i64::MAX as f64 => {
                error.with_hint(format!("write {x:.0} without decimal point or exponent"))
            }
            (KeywordType::Integer | KeywordType::Double, Err(_)) => {
                error.with_hint(format!("a schema may declare `{keyword}: Text;` or `{keyword}: Mixed;`"))
            }
            _ => error,
        }
    }
}

/// The value of a step or span between these seconds. A key has the minutes that contain its ends; the text has the
/// seconds.
pub(crate) fn step_value(start: i64, end: i64) -> KeyValue {
    let [first, last] = [start, end].map(|seconds| seconds.div_euclid(60));
    KeyValue::Span { start: first, end: last, text: step::text(start, end).into() }
}

fn real(text: &str) -> Option<KeyValue> {
    number::decimal(text).map(|(x, canonical)| KeyValue::Real(x, canonical.into()))
}

fn month(text: &str) -> Option<u8> {
    calendar::date(text).map(|day| day.month).or_else(|| calendar::month(text))
}
