//! Defects of a header, in words that name the place and the rule.
//!
//! Reading and checking share one parser. A reader stops at the first finding that it cannot tolerate; a
//! checker records it and continues as long as the following bytes have a meaning.
//!
//! Invariants: a collection holds at most [`Findings::LIMIT`] findings and only counts the others, without
//! making messages for them; a finding contains at most [`SHOWN`] characters of a name in the file. Findings
//! therefore stay small for every file, even if a thousand of them name one object with a name of megabytes.

use std::fmt;

use fieldstone_core::Error;

/// Number of characters of a name in messages.
pub const SHOWN: usize = 80;

/// A name from a file for messages: escaped, with invalid UTF-8 replaced, and clipped.
///
/// ```
/// use fieldstone_format::netcdf::parse::shown;
/// assert_eq!(shown("tab\t"), "tab\\t");
/// assert_eq!(shown("é".repeat(81)), "é".repeat(80) + "…");
/// ```
pub fn shown(name: impl AsRef<[u8]>) -> String {
    let name = name.as_ref();
    // No character has more than four bytes, so these hold at least one more than messages show.
    let begin = &name[..name.len().min(4 * (SHOWN + 1))];
    let text = String::from_utf8_lossy(begin);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file obeys the format, but users should know.
    Warning,
    /// The file breaks a rule of the format.
    Error,
}

impl Severity {
    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One defect of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// Its offset in the file.
    pub offset: u64,
    /// The object at fault (``variable `t` ``); empty for the file as a whole.
    pub object: String,
    /// The rule that is broken.
    pub rule: &'static str,
    /// The content of the file that breaks it.
    pub message: String,
    /// The next step, if one is known.
    pub hint: &'static str,
}

impl Finding {
    /// A violation of a rule.
    pub fn error(
        offset: u64,
        object: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Finding {
        let (object, message) = (object.into(), message.into());
        Finding { severity: Severity::Error, offset, object, rule, message, hint: "" }
    }
    /// A fact that users should know.
    pub fn warning(
        offset: u64,
        object: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(offset, object, rule, message) }
    }
    /// Adds a next step.
    pub fn with_hint(self, hint: &'static str) -> Finding {
        Finding { hint, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "offset {}: ", self.offset)?;
        if !self.object.is_empty() {
            write!(out, "{}: ", self.object)?;
        }
        write!(out, "{} (rule: {})", self.message, self.rule)
    }
}

impl Finding {
    /// Converts it to a reader's error.
    pub fn into_error(self) -> Error {
        let error = Error::corrupt(self.to_string());
        if self.hint.is_empty() { error } else { error.with_hint(self.hint) }
    }
}

/// Findings, in the order of their discovery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first findings.
    pub list: Vec<Finding>,
    /// Number of further errors and warnings.
    pub omitted: [u64; 2],
}

impl Findings {
    /// Number of findings to keep.
    pub const LIMIT: usize = 1_000;

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.add(finding.severity, || finding);
    }
    /// Adds a violation of a rule; `describe` makes object and message, and is not called if enough findings
    /// are kept.
    pub fn error<O: Into<String>, M: Into<String>>(
        &mut self,
        offset: u64,
        rule: &'static str,
        describe: impl FnOnce() -> (O, M),
    ) {
        self.add(Severity::Error, || {
            let (object, message) = describe();
            Finding::error(offset, object, rule, message)
        });
    }
    /// Adds a fact that users should know; see [`Findings::error`].
    pub fn warning<O: Into<String>, M: Into<String>>(
        &mut self,
        offset: u64,
        rule: &'static str,
        describe: impl FnOnce() -> (O, M),
    ) {
        self.add(Severity::Warning, || {
            let (object, message) = describe();
            Finding::warning(offset, object, rule, message)
        });
    }
    fn add(&mut self, severity: Severity, finding: impl FnOnce() -> Finding) {
        if self.list.len() < Findings::LIMIT {
            self.list.push(finding());
        } else {
            self.omitted[usize::from(severity == Severity::Warning)] += 1;
        }
    }
    /// Whether no rule is violated.
    pub fn ok(&self) -> bool {
        self.omitted[0] == 0 && self.list.iter().all(|finding| finding.severity != Severity::Error)
    }
}

/// A parser's treatment of findings: stop at the first error, or keep them.
#[derive(Debug)]
pub(crate) struct Notes<'f>(pub(crate) Option<&'f mut Findings>);

impl Notes<'_> {
    /// Whether findings are kept, so that looking for tolerated ones pays off.
    pub fn kept(&self) -> bool {
        self.0.is_some()
    }
    /// Adds a violation that readers tolerate; see [`Findings::error`].
    pub fn error<O: Into<String>, M: Into<String>>(
        &mut self,
        offset: u64,
        rule: &'static str,
        describe: impl FnOnce() -> (O, M),
    ) {
        if let Some(findings) = &mut self.0 {
            findings.error(offset, rule, describe);
        }
    }
    /// Adds an oddity; see [`Notes::error`].
    pub fn warning<O: Into<String>, M: Into<String>>(
        &mut self,
        offset: u64,
        rule: &'static str,
        describe: impl FnOnce() -> (O, M),
    ) {
        if let Some(findings) = &mut self.0 {
            findings.warning(offset, rule, describe);
        }
    }
    /// Adds a violation that readers refuse, after which a checker can continue.
    pub fn refuse<O: Into<String>, M: Into<String>>(
        &mut self,
        offset: u64,
        rule: &'static str,
        describe: impl FnOnce() -> (O, M),
    ) -> Result<(), Box<Finding>> {
        match &mut self.0 {
            Some(findings) => findings.error(offset, rule, describe),
            None => {
                let (object, message) = describe();
                return Err(Box::new(Finding::error(offset, object, rule, message)));
            }
        }
        Ok(())
    }
}
