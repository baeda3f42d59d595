//! What is wrong with a header, in words that name the place and the rule.
//!
//! Reading and checking share one parser: a reader stops at the first finding that it cannot live with; a
//! checker notes it and goes on where the bytes that follow still have a meaning.
//!
//! Invariants: a collection holds at most [`Findings::LIMIT`] findings and counts the others, for which no words
//! are made; of a name that stands in the file at most [`SHOWN`] characters get into a finding. So findings stay
//! small whatever the file, also where a thousand of them name one object with a name of megabytes.

use std::fmt;

use fieldstone_core::Error;

/// How many characters of a name messages show.
pub const SHOWN: usize = 80;

/// A name from a file as messages show it: escaped, what is no UTF-8 replaced, and clipped.
///
/// ```
/// use fieldstone_format::netcdf::parse::shown;
/// assert_eq!(shown("tab\t"), "tab\\t");
/// assert_eq!(shown("é".repeat(81)), "é".repeat(80) + "…");
/// ```
pub fn shown(name: impl AsRef<[u8]>) -> String {
    let name = name.as_ref();
    // No character has more than four bytes, so these hold one more than is shown.
    let begin = &name[..name.len().min(4 * (SHOWN + 1))];
    let text = String::from_utf8_lossy(begin);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The file keeps the format, but somebody should know.
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

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where in the file.
    pub offset: u64,
    /// The object at fault (``variable `t` ``); empty for the file as a whole.
    pub object: String,
    /// The rule that is broken.
    pub rule: &'static str,
    /// What is there instead.
    pub message: String,
    /// The next step, where there is one.
    pub hint: &'static str,
}

impl Finding {
    /// A broken rule.
    pub fn error(
        offset: u64,
        object: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Finding {
        let (object, message) = (object.into(), message.into());
        Finding { severity: Severity::Error, offset, object, rule, message, hint: "" }
    }
    /// Something that somebody should know.
    pub fn warning(
        offset: u64,
        object: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(offset, object, rule, message) }
    }
    /// The same with a next step.
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
    /// The error that a reader raises for it.
    pub fn into_error(self) -> Error {
        let error = Error::corrupt(self.to_string());
        if self.hint.is_empty() { error } else { error.with_hint(self.hint) }
    }
}

/// What was found, in the order in which it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first of them.
    pub list: Vec<Finding>,
    /// How many errors and warnings there were beyond those.
    pub left_out: [u64; 2],
}

impl Findings {
    /// How many are kept.
    pub const LIMIT: usize = 1_000;

    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        self.add(finding.severity, || finding);
    }
    /// Adds a broken rule; `describe` makes object and message, and is not asked once enough are kept.
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
    /// Adds something that somebody should know; see [`Findings::error`].
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
            self.left_out[usize::from(severity == Severity::Warning)] += 1;
        }
    }
    /// Whether no rule is broken.
    pub fn ok(&self) -> bool {
        self.left_out[0] == 0 && self.list.iter().all(|finding| finding.severity != Severity::Error)
    }
}

/// What a parser does with a finding: nothing but stop at errors, or keep it.
#[derive(Debug)]
pub(crate) struct Notes<'f>(pub(crate) Option<&'f mut Findings>);

impl Notes<'_> {
    /// Whether findings are kept, so that looking for those that readers live with is worth while.
    pub fn kept(&self) -> bool {
        self.0.is_some()
    }
    /// A broken rule that readers live with; see [`Findings::error`].
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
    /// Something odd; see [`Notes::error`].
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
    /// Something that readers refuse, after which a checker can go on.
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
