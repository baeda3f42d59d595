//! Splits a text into the words of a shell, to find options of the programs in it, and text piped to a program that
//! reads a password.
//!
//! Other text has words, too; a quote that is never closed is an ordinary character.

use std::ops::Range;

use super::text::{TextKind, is_reference};
use super::{arguments, names};

/// A word: its text without quotes, and the position of each byte.
#[derive(Debug, Default)]
struct Word {
    text: String,
    at: Vec<usize>,
    /// Whether it began with a quote that disables references.
    quoted: bool,
}

/// Words up to a sign that ends a command, and whether a pipe passes its output on.
#[derive(Debug, Default)]
struct Command {
    words: Vec<Word>,
    piped: bool,
}

impl Word {
    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.at.extend(at..at + c.len_utf8());
    }

    /// The position of a part of the word in the text.
    fn place(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let last = part.end.checked_sub(1).and_then(|last| self.at.get(last))?;
        Some(*self.at.get(part.start)?..last + 1)
    }

    fn whole(&self) -> Option<Range<usize>> {
        self.place(&(0..self.text.len()))
    }
}

/// The secrets of a text with spaces; its words may contain `levels` more levels of quoted texts.
pub fn secrets(text: &str, levels: u32, found: &mut Vec<Range<usize>>) {
    let commands = commands(text);
    for (i, command) in commands.iter().enumerate() {
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        for (word, ranges) in command.words.iter().zip(arguments::secrets(&words, 0)) {
            let within = super::within(&word.text, &[], TextKind::Argument, levels);
            let is_reference = |range: &Range<usize>| !word.quoted && is_reference(&word.text[range.clone()]);
            let all = ranges.into_iter().chain(within).filter(|range| !is_reference(range));
            found.extend(all.filter_map(|range| word.place(&range)));
        }
        if commands.get(i + 1).is_some_and(|next| command.piped && takes_a_secret(&next.words)) {
            said(&command.words, found);
        }
        here_string(&command.words, found);
    }
    here_documents(text, found);
}

/// The output of a command that only prints.
fn said(words: &[Word], found: &mut Vec<Range<usize>>) {
    let Some(at) =
        words.iter().position(|word| matches!(base(&word.text), "echo" | "printf" | "print" | "yes"))
    else {
        return;
    };
    let is_said = |word: &&Word| {
        !matches!(word.text.as_str(), "-n" | "-e" | "-ne" | "-en" | "-r" | "--")
            && !word.text.starts_with('%')
    };
    found.extend(words[at + 1..].iter().filter(is_said).filter_map(Word::whole));
}

/// The text after `<<<` for a command that reads a secret.
fn here_string(words: &[Word], found: &mut Vec<Range<usize>>) {
    let Some(at) = words.iter().position(|word| word.text == "<<<") else { return };
    let reads = words.first().is_some_and(|word| word.text == "read")
        && words[..at].iter().any(|word| names::suspicion(&word.text) >= names::Suspicion::Likely);
    if reads || takes_a_secret(words) {
        found.extend(words.get(at + 1).and_then(Word::whole));
    }
}

/// The lines between `<<NAME` and `NAME`, if a command of the first line reads a secret.
fn here_documents(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, sign) in text.match_indices("<<") {
        let begin = text[..at].rfind('\n').map_or(0, |before| before + 1);
        let Some(end) = text[at..].find('\n').map(|length| at + length) else { continue };
        let mark = text[at + sign.len()..end].trim_start_matches(['-', ' ', '"', '\'', '\\']);
        let mark = mark.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        if mark.is_empty()
            || !commands(&text[begin..end]).iter().any(|command| takes_a_secret(&command.words))
        {
            continue;
        }
        let body = &text[end + 1..];
        let lines = body.split_inclusive('\n').take_while(|line| line.trim() != mark);
        found.push(end + 1..end + 1 + lines.map(str::len).sum::<usize>());
    }
}

/// Whether a command reads a password from its input.
fn takes_a_secret(words: &[Word]) -> bool {
    let has = |of: &dyn Fn(&str) -> bool| words.iter().any(|word| of(&word.text));
    let runs = |names: &[&str]| words.iter().any(|word| names.contains(&base(&word.text)));
    let option = |word: &str| {
        let word = word.trim_start_matches('-');
        let stdin = word.ends_with("stdin") && !word.starts_with("no-");
        stdin || word.starts_with("passphrase-fd") || word == "with-token" || word.starts_with("key-file=-")
    };
    let dashed = |word: &str| word.starts_with('-') && option(word);
    let sudo = runs(&["sudo"])
        && has(&|word| word.starts_with('-') && !word.starts_with("--") && word.contains('S'));
    let openssl = runs(&["openssl"]) && has(&|word| word == "stdin");
    sudo || openssl
        || has(&dashed)
        || runs(&[
            "su",
            "chpasswd",
            "passwd",
            "smbpasswd",
            "kinit",
            "cryptsetup",
            "htpasswd",
            "ssh-add",
            "pwconv",
        ])
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Splits a text into words, and these into commands.
fn commands(text: &str) -> Vec<Command> {
    let (mut commands, mut command, mut word) = (Vec::new(), Command::default(), None::<Word>);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\\' if next.is_some() => {
                chars.next();
                if let Some((at, c)) = next.filter(|(_, c)| *c != '\n') {
                    word.get_or_insert_default().push(c, at);
                }
            }
            '"' | '\'' if closes(&text[at + 1..], c) => {
                let word = word.get_or_insert_with(|| Word { quoted: c == '\'', ..Word::default() });
                while let Some((at, inner)) = chars.next().filter(|(_, inner)| *inner != c) {
                    match chars.peek().copied().filter(|_| inner == '\\' && c == '"') {
                        Some((at, escaped)) => {
                            chars.next();
                            word.push(escaped, at);
                        }
                        None => word.push(inner, at),
                    }
                }
            }
            '<' | '>' => {
                command.words.extend(word.take());
                let mut sign = Word::default();
                sign.push(c, at);
                while let Some((at, c)) = chars.next_if(|(_, next)| *next == c) {
                    sign.push(c, at);
                }
                command.words.push(sign);
            }
            ';' | '|' | '&' | '\n' | '(' | ')' => {
                command.words.extend(word.take());
                command.piped = c == '|' && chars.next_if(|(_, next)| *next == '|').is_none();
                commands.push(std::mem::take(&mut command));
            }
            c if c.is_whitespace() => command.words.extend(word.take()),
            c => word.get_or_insert_default().push(c, at),
        }
    }
    command.words.extend(word);
    commands.push(command);
    commands
}

/// Whether the following text closes a quote.
fn closes(rest: &str, quote: char) -> bool {
    let mut before = ' ';
    rest.chars().any(|c| {
        let closes = c == quote && (before != '\\' || quote == '\'');
        before = if before == '\\' { ' ' } else { c };
        closes
    })
}
