//! Options whose values are secrets: by their names, and by the programs that take them.

use std::ops::Range;

use super::names::{self, Suspicion, is_one, suspicion};

/// The place of an option's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// The next argument, or the text joined to the option.
    Value,
    /// The text joined to the option.
    Glued,
    /// In either, the text after the first such character.
    Behind(char),
}

/// A program with options for secrets.
struct Program {
    names: &'static [&'static str],
    /// A word that must precede.
    when: &'static str,
    options: &'static [(&'static str, Takes)],
}

/// Programs with options whose names do not reveal that they take a secret.
const PROGRAMS: [Program; 22] = [
    Program {
        names: &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlcheck",
            "mysqlpump",
            "mysqlshow",
            "mysqlsh",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
            "7z",
            "7za",
            "7zr",
            "rar",
            "unrar",
        ],
        when: "",
        options: &[("-p", Takes::Glued), ("-hp", Takes::Glued)],
    },
    Program { names: &["sshpass"], when: "", options: &[("-p", Takes::Value)] },
    Program {
        names: &[
            "ldapsearch",
            "ldapadd",
            "ldapmodify",
            "ldapdelete",
            "ldapwhoami",
            "ldapcompare",
            "ldapmodrdn",
            "ldapexop",
        ],
        when: "",
        options: &[("-w", Takes::Value)],
    },
    Program {
        names: &["ldappasswd"],
        when: "",
        options: &[("-w", Takes::Value), ("-s", Takes::Value), ("-a", Takes::Value)],
    },
    Program { names: &["openssl"], when: "", options: &[("-k", Takes::Value), ("-K", Takes::Value)] },
    Program { names: &["redis-cli", "redis-benchmark"], when: "", options: &[("-a", Takes::Value)] },
    Program {
        names: &[
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "mongoimport",
            "mongostat",
            "beeline",
            "cqlsh",
            "hdbsql",
            "rdesktop",
            "ncftpput",
            "ncftpget",
            "ncftp",
            "twine",
            "impala-shell",
            "vncviewer",
            "mosquitto_pub",
            "mosquitto_sub",
            "kcadm.sh",
            "cadaver",
            "irods",
            "iinit",
        ],
        when: "",
        options: &[("-p", Takes::Value), ("-P", Takes::Value)],
    },
    Program {
        names: &[
            "docker",
            "podman",
            "nerdctl",
            "buildah",
            "skopeo",
            "oras",
            "crane",
            "regctl",
            "helm",
            "singularity",
            "apptainer",
            "oc",
            "az",
            "cf",
            "argocd",
            "ibmcloud",
            "rancher",
            "rosa",
            "conda",
            "anaconda",
        ],
        when: "login",
        options: &[("-p", Takes::Value), ("--password", Takes::Value)],
    },
    Program {
        names: &[
            "zip",
            "unzip",
            "zipcloak",
            "sqlcmd",
            "bcp",
            "isql",
            "tsql",
            "ipmitool",
            "ssh-keygen",
            "pgbench",
        ],
        when: "",
        options: &[("-P", Takes::Value)],
    },
    Program { names: &["ssh-keygen"], when: "", options: &[("-N", Takes::Value)] },
    Program {
        names: &["snmpget", "snmpwalk", "snmpset", "snmpbulkwalk", "snmptrap", "snmptable"],
        when: "",
        options: &[("-A", Takes::Value), ("-X", Takes::Value), ("-c", Takes::Value)],
    },
    Program {
        names: &["curl", "aria2c"],
        when: "",
        options: &[
            ("-u", Takes::Behind(':')),
            ("-U", Takes::Behind(':')),
            ("-E", Takes::Behind(':')),
            ("--cert", Takes::Behind(':')),
            ("-b", Takes::Behind('=')),
        ],
    },
    Program { names: &["http", "https", "xh", "xhs"], when: "", options: &[("-a", Takes::Behind(':'))] },
    Program {
        names: &["smbclient", "smbget", "rpcclient", "smbmap", "net", "winexe", "wmic"],
        when: "",
        options: &[("-U", Takes::Behind('%')), ("--user", Takes::Behind('%'))],
    },
    Program { names: &["lftp", "lftpget"], when: "", options: &[("-u", Takes::Behind(','))] },
    Program { names: &["open"], when: "", options: &[("-u", Takes::Behind(','))] },
    Program { names: &["xfreerdp", "xfreerdp3", "wlfreerdp"], when: "", options: &[("/p:", Takes::Glued)] },
    Program { names: &["kubectl", "oc"], when: "create", options: &[("--from-literal", Takes::Behind('='))] },
    Program { names: &["plink", "pscp", "psftp", "putty"], when: "", options: &[("-pw", Takes::Value)] },
    Program { names: &["influx", "wget", "svn", "hg"], when: "", options: &[("--password", Takes::Value)] },
    Program { names: &["rsync"], when: "", options: &[] },
    Program { names: &["iinit"], when: "", options: &[] },
];

/// Options of many programs whose value is `user:password`.
const PAIRS: [&str; 9] =
    ["-u", "-U", "--user", "--username", "--login", "--auth", "--proxy-user", "--userpwd", "--basic-auth"];
/// Programs whose `-u` or `--user` is a user and a group, or another value.
const GROUPS: [&str; 25] = [
    "sort",
    "date",
    "git",
    "diff",
    "tail",
    "nc",
    "pip",
    "cp",
    "ln",
    "du",
    "uniq",
    "ncrcat",
    "ncks",
    "docker",
    "podman",
    "nerdctl",
    "chown",
    "rsync",
    "srun",
    "sbatch",
    "salloc",
    "singularity",
    "apptainer",
    "install",
    "buildah",
];
/// Programs of Oracle, which take `user/password@database`.
const ORACLE: [&str; 8] = ["sqlplus", "sqlldr", "exp", "imp", "expdp", "impdp", "rman", "sqlcl"];
/// Words before the name of a setting.
const SETS: [&str; 4] = ["set", "config", "configure", "add"];

/// An option whose value comes next.
#[derive(Clone, Copy)]
enum Pending<'a> {
    Named(&'a str, Suspicion),
    Whole,
    Behind(char),
    Pair(bool),
}

/// The known context of the words so far.
#[derive(Default)]
struct ProgramContext<'a> {
    program: &'a str,
    words: Vec<&'a str>,
}

impl<'a> ProgramContext<'a> {
    fn note(&mut self, word: &'a str) {
        let base = word.rsplit('/').next().unwrap_or(word);
        let is_known = PROGRAMS.iter().any(|program| program.names.contains(&base))
            || GROUPS.contains(&base)
            || ORACLE.contains(&base)
            || matches!(base, "htpasswd" | "mc" | "vault" | "pdftk");
        // A user may have the name of a program.
        let is_value = self.words.last().is_some_and(|before| PAIRS.contains(before));
        if is_known && (base == word || word.starts_with('/')) && !is_value {
            *self = ProgramContext { program: base, words: Vec::new() };
        } else {
            self.words.push(word);
        }
    }

    /// The kind of an option's value, by the program; with the text joined to it.
    fn option<'w>(&self, word: &'w str) -> Option<(Takes, Option<&'w str>)> {
        let own = PROGRAMS.iter().filter(|program| program.names.contains(&self.program));
        let ready = own.filter(|program| program.when.is_empty() || self.words.contains(&program.when));
        for (option, takes) in ready.flat_map(|program| program.options) {
            let Some(rest) = word.strip_prefix(option) else { continue };
            if rest.is_empty() {
                return (*takes != Takes::Glued).then_some((*takes, None));
            }
            match rest.strip_prefix('=') {
                Some(value) if option.starts_with("--") => return Some((*takes, Some(value))),
                _ if !option.starts_with("--") => return Some((*takes, Some(rest))),
                _ => {}
            }
        }
        None
    }
}

/// The secrets of each of some words. `first`: the first word that may be an option, because a program precedes it.
pub fn secrets(words: &[&str], first: usize) -> Vec<Vec<Range<usize>>> {
    let mut all = vec![Vec::new(); words.len()];
    let (mut seen, mut pending) = (ProgramContext::default(), None);
    for (i, word) in words.iter().enumerate() {
        if let Some(range) = pending.take().and_then(|pending| value(pending, word)) {
            all[i].push(range);
            continue;
        }
        if i >= first
            && word.starts_with(['-', '/'])
            && let Some((range, next)) = option(&seen, word)
        {
            all[i].extend(range);
            pending = next;
            seen.words.push(word);
            continue;
        }
        if !word.starts_with('-') {
            all[i].extend(plain(&seen, words, i));
            let sets = seen.words.iter().any(|before| SETS.contains(before) || before.ends_with("set"));
            if i >= first && is_setting(word, sets || seen.program == "pdftk") {
                pending = Some(Pending::Whole);
            }
        }
        seen.note(word);
    }
    all
}

/// The name of a setting whose value comes next.
fn is_setting(word: &str, sets: bool) -> bool {
    let name = word.rsplit([':', '/']).next().unwrap_or(word);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    sets && !name.is_empty() && name.chars().all(plain) && suspicion(name) >= Suspicion::Likely
}

/// The secret of an option in its next word.
fn value(pending: Pending<'_>, word: &str) -> Option<Range<usize>> {
    let whole = 0..word.len();
    let taken = match pending {
        Pending::Named(name, suspicion) => {
            (!is_option(word) && is_one(suspicion, name, word)).then_some(whole)
        }
        Pending::Whole => (!is_option(word)).then_some(whole),
        Pending::Behind(sign) => behind(word, sign),
        Pending::Pair(certain) => pair(word, certain),
    };
    taken.filter(|range| !range.is_empty())
}

/// Whether a word is an option, rather than a value that begins like one.
fn is_option(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return word.starts_with('-') && word.chars().count() <= 2;
    };
    let name = name.split('=').next().unwrap_or(name);
    name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// The secret in an option, and the kind of secret expected in the next word; `None` for an option without one.
fn option<'w>(
    seen: &ProgramContext<'_>,
    word: &'w str,
) -> Option<(Option<Range<usize>>, Option<Pending<'w>>)> {
    let rest = |value: &str| word.len() - value.len();
    let shift = |range: Range<usize>, by: usize| range.start + by..range.end + by;
    if let Some((takes, glued)) = seen.option(word) {
        return Some(match (takes, glued) {
            (Takes::Value | Takes::Glued, Some(value)) => (Some(rest(value)..word.len()), None),
            (Takes::Behind(':'), Some(value)) => {
                (pair(value, true).map(|range| shift(range, rest(value))), None)
            }
            (Takes::Behind(sign), Some(value)) => (behind(value, sign).map(|r| shift(r, rest(value))), None),
            (Takes::Behind(':'), None) => (None, Some(Pending::Pair(true))),
            (Takes::Behind(sign), None) => (None, Some(Pending::Behind(sign))),
            (Takes::Value | Takes::Glued, None) => (None, Some(Pending::Whole)),
        });
    }
    let (name, glued) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    if PAIRS.contains(&name) && !GROUPS.contains(&seen.program) {
        let certain = matches!(seen.program, "curl" | "wget" | "http" | "https");
        return Some(match glued {
            Some(value) => (pair(value, certain).map(|range| shift(range, rest(value))), None),
            None => (None, Some(Pending::Pair(certain))),
        });
    }
    // curl's one-letter options may be joined.
    let flags = word.strip_prefix('-').and_then(|flags| flags.strip_suffix(['u', 'U']));
    if seen.program == "curl" && flags.is_some_and(|flags| flags.chars().all(|c| c.is_ascii_alphabetic())) {
        return Some((None, Some(Pending::Pair(true))));
    }
    // `-pX`, of any program.
    if let Some(value) = word.strip_prefix("-p").filter(|value| names::is_random(value)) {
        return Some((Some(rest(value)..word.len()), None));
    }
    let named = glued.is_none() && name.starts_with('-') && name.trim_start_matches('-').chars().all(is_name);
    match suspicion(name) {
        Suspicion::None => None,
        level if named => Some((None, Some(Pending::Named(name, level)))),
        _ => None,
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The password of `user:password`; without one the user, which may then be a token.
fn pair(value: &str, certain: bool) -> Option<Range<usize>> {
    let (user, password) = value.split_once(':')?;
    if value.contains("://") || user.contains('/') {
        return None;
    }
    if password.is_empty() {
        return (certain && user.len() >= 8).then_some(0..user.len());
    }
    let number = password.len() <= 5 && password.chars().all(|c| c.is_ascii_digit());
    let path = password.starts_with(['/', '\\']);
    (certain || !(number || path)).then_some(user.len() + 1..value.len())
}

fn behind(value: &str, sign: char) -> Option<Range<usize>> {
    value.find(sign).map(|at| at + sign.len_utf8()..value.len())
}

/// Words that are secrets by their position.
fn plain(seen: &ProgramContext<'_>, words: &[&str], i: usize) -> Option<Range<usize>> {
    let (word, last) = (words[i], i + 1 == words.len());
    let whole = 0..word.len();
    match seen.program {
        program if ORACLE.contains(&program) => {
            let (user, rest) = word.split_once('/').filter(|(user, _)| !user.is_empty())?;
            let password = rest.split('@').next().unwrap_or(rest);
            let is_path = rest.contains('/') || names::is_path(word);
            (!is_path && !password.is_empty()).then_some(user.len() + 1..user.len() + 1 + password.len())
        }
        "htpasswd" => {
            let batch = seen.words.iter().any(|word| word.starts_with('-') && word.contains('b'));
            (batch && last).then_some(whole)
        }
        "mysqladmin" => (seen.words.last() == Some(&"password")).then_some(whole),
        "vault" => (seen.words == ["login"]).then_some(whole),
        "mc" => (seen.words.first() == Some(&"alias") && seen.words.len() >= 4).then_some(whole),
        _ => None,
    }
}
