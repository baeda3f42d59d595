//! Scripts in a command: the file that an interpreter executes, and the program that a launcher starts.
//!
//! In `python3 x.py`, `bash x.sh` or `mpiexec -n 4 python3 -m model`, the program that runs is the interpreter or the
//! launcher, which does not identify the computation. The script does, so it is an input of the execution. This module
//! only looks at the words of the command: the first word after an interpreter that is a file is its script; options
//! before it, with their values, are skipped.

use std::path::{Path, PathBuf};

use super::files::program;

/// Programs that execute a file; a version number may follow the name.
const INTERPRETERS: [&str; 28] = [
    "python",
    "pypy",
    "ipython",
    "bash",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "csh",
    "tcsh",
    "Rscript",
    "R",
    "julia",
    "perl",
    "ruby",
    "node",
    "lua",
    "luajit",
    "octave",
    "octave-cli",
    "gnuplot",
    "ncl",
    "tclsh",
    "php",
    "guile",
    "scilab",
    "gdl",
];
/// Programs that start others.
const LAUNCHERS: [&str; 38] = [
    "mpiexec",
    "mpirun",
    "srun",
    "aprun",
    "jsrun",
    "orterun",
    "prterun",
    "ibrun",
    "lrun",
    "env",
    "nice",
    "nohup",
    "time",
    "timeout",
    "stdbuf",
    "taskset",
    "numactl",
    "ionice",
    "setsid",
    "chrt",
    "xvfb-run",
    "unbuffer",
    "sudo",
    "doas",
    "catchsegv",
    "valgrind",
    "gdb",
    "strace",
    "perf",
    "torchrun",
    "coverage",
    "uv",
    "poetry",
    "conda",
    "mamba",
    "micromamba",
    "singularity",
    "apptainer",
];
/// Launchers whose first argument may be a Python script.
const OF_PYTHON: [&str; 2] = ["torchrun", "coverage"];
/// Launchers that take an image before the command.
const CONTAINERS: [&str; 2] = ["singularity", "apptainer"];
/// Python modules that execute a script which follows them.
const RUNNERS: [&str; 14] = [
    "torch.distributed.run",
    "torch.distributed.launch",
    "mpi4py",
    "coverage",
    "cProfile",
    "profile",
    "pdb",
    "trace",
    "memory_profiler",
    "kernprof",
    "line_profiler",
    "scalene",
    "debugpy",
    "accelerate.commands.launch",
];
/// Options that are followed by code, not by a file.
const CODE: [&str; 6] = ["-c", "-e", "-E", "--eval", "--execute", "--print"];

/// Folders in which files are searched.
struct SearchFolders<'a> {
    /// The list of folders for programs.
    path: Option<&'a str>,
    folder: &'a Path,
}

/// The scripts, and the programs that launchers start, if they are files.
pub fn scripts(command: &[String], path: Option<&str>, folder: &Path) -> Vec<PathBuf> {
    let places = SearchFolders { path, folder };
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    places.of_command(&words, &mut found);
    found
}

/// The name of a program: without folders and version number.
fn base(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() || ["R", "gdl"].contains(&name) { name } else { bare.trim_end_matches('-') }
}

fn is_launcher(word: &str) -> bool {
    LAUNCHERS.contains(&word.rsplit('/').next().unwrap_or(word)) || LAUNCHERS.contains(&base(word))
}

impl SearchFolders<'_> {
    fn file(&self, word: &str) -> Option<PathBuf> {
        let path = self.folder.join(word);
        Some(path).filter(|path| !word.is_empty() && path.is_file())
    }

    fn of_command(&self, words: &[&str], found: &mut Vec<PathBuf>) {
        let Some((first, rest)) = words.split_first() else { return };
        if INTERPRETERS.contains(&base(first)) {
            return self.of_interpreter(first, rest, found);
        }
        if !is_launcher(first) {
            return;
        }
        let name = base(first);
        for (i, word) in rest.iter().enumerate() {
            if word.starts_with('-') || (word.contains('=') && !word.contains('/')) {
                continue;
            }
            if INTERPRETERS.contains(&base(word)) || is_launcher(word) {
                return self.of_command(&rest[i..], found);
            }
            if OF_PYTHON.contains(&name) && word.ends_with(".py") {
                return found.extend(self.file(word));
            }
            if let Some(started) = program(word, self.path, self.folder).filter(|_| !word.is_empty()) {
                found.push(started);
                if !CONTAINERS.contains(&name) {
                    return;
                }
            }
        }
    }

    fn of_interpreter(&self, name: &str, words: &[&str], found: &mut Vec<PathBuf>) {
        let (mut before, is_python) = ("", base(name).ends_with("python") || base(name) == "pypy");
        for (i, word) in words.iter().enumerate() {
            let option = std::mem::replace(&mut before, word);
            if is_code(option, base(name)) {
                // The code of a shell may itself start scripts.
                if !is_python {
                    self.of_code(word, found);
                }
                return;
            }
            if is_python && option == "-m" {
                found.extend(self.module(name, word));
                if RUNNERS.contains(word) {
                    let behind = words[i + 1..].iter().find(|word| word.ends_with(".py"));
                    found.extend(behind.and_then(|script| self.file(script)));
                }
                return;
            }
            if let Some(value) = ["--file=", "-f="].iter().find_map(|head| word.strip_prefix(head)) {
                found.extend(self.file(value));
                return;
            }
            if word.starts_with('-') {
                continue;
            }
            if let Some(script) = self.file(word) {
                found.push(script);
                return;
            }
            let main = self.folder.join(word).join("__main__.py");
            if is_python && main.is_file() {
                found.push(main);
                return;
            }
            // `R CMD BATCH x.R`, and values of options.
            if !(option.starts_with('-') || ["CMD", "BATCH"].contains(word)) {
                return;
            }
        }
    }

    /// The scripts of a shell line, from each of its commands.
    fn of_code(&self, code: &str, found: &mut Vec<PathBuf>) {
        for command in code.split([';', '|', '&', '\n', '(', ')']) {
            let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            // Skip variables that are set for the command, and shell keywords before it.
            let plain = |word: &&str| {
                (word.contains('=') && !word.starts_with('-'))
                    || ["exec", "then", "do", "else", "if", "while", "!", "{", "."].contains(word)
            };
            let words: Vec<&str> = words.skip_while(plain).collect();
            if let Some(script) = words.first().filter(|first| first.contains('/')) {
                found.extend(self.file(script));
            }
            self.of_command(&words, found);
        }
    }

    /// The file of a Python module: in the folder, in `PYTHONPATH`, or next to the interpreter.
    fn module(&self, interpreter: &str, module: &str) -> Option<PathBuf> {
        let below = module.replace('.', "/");
        let mut roots = vec![self.folder.to_owned()];
        let more = std::env::var("PYTHONPATH").unwrap_or_default();
        roots.extend(more.split(':').filter(|root| !root.is_empty()).map(|root| self.folder.join(root)));
        let own = program(interpreter, self.path, self.folder);
        if let Some(library) = own.as_deref().and_then(Path::parent).and_then(Path::parent) {
            let versions = std::fs::read_dir(library.join("lib")).into_iter().flatten().flatten();
            let python = |path: &PathBuf| {
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"))
            };
            let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path()).filter(python).collect();
            versions.sort_unstable();
            roots.extend(versions.into_iter().map(|version| version.join("site-packages")));
        }
        let files =
            |root: &PathBuf| [root.join(format!("{below}.py")), root.join(&below).join("__main__.py")];
        roots.iter().flat_map(files).find(|path| path.is_file())
    }
}

/// Whether code follows an option.
fn is_code(option: &str, interpreter: &str) -> bool {
    let shell = interpreter.ends_with("sh");
    // Options of a shell may be joined: `bash -lc`.
    let joined = shell && option.starts_with('-') && !option.starts_with("--") && option.ends_with('c');
    let of_interpreter = match interpreter {
        "python" | "ipython" | "pypy" => option == "-c",
        // Their scripts follow the code.
        "gnuplot" | "lua" | "luajit" => false,
        "php" => option == "-r",
        _ => CODE.contains(&option),
    };
    joined || (!shell && of_interpreter)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_script_of_a_command_is_found_whatever_starts_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("pack/sub")).unwrap();
        fs::create_dir_all(root.join("app")).unwrap();
        for name in [
            "x.py",
            "x.sh",
            "x.R",
            "x.jl",
            "x.pl",
            "in.nc",
            "pack/sub/__main__.py",
            "pack/mod.py",
            "app/__main__.py",
        ] {
            fs::write(root.join(name), name).unwrap();
        }
        fs::write(root.join("model"), "").unwrap();
        fs::set_permissions(root.join("model"), fs::Permissions::from_mode(0o755)).unwrap();
        let found = |line: &str| {
            let words: Vec<String> = line.split(' ').map(|word| word.replace('␣', " ")).collect();
            let place = |path: &PathBuf| fs::canonicalize(path).unwrap();
            let below =
                |path: PathBuf| path.strip_prefix(place(&root.to_owned())).unwrap().display().to_string();
            let found = scripts(&words, Some("/usr/bin:/bin"), root);
            found.iter().map(|path| below(place(path))).collect::<Vec<_>>()
        };
        for (line, script) in [
            ("python3 x.py in.nc", "x.py"),
            ("python3.11 -u -W ignore x.py", "x.py"),
            ("/opt/bin/python x.py", "x.py"),
            ("bash -e x.sh", "x.sh"),
            ("bash -o pipefail x.sh", "x.sh"),
            ("Rscript --vanilla x.R in.nc", "x.R"),
            ("R CMD BATCH x.R", "x.R"),
            ("R --no-save --file=x.R", "x.R"),
            ("R -f x.R", "x.R"),
            ("julia -t 4 --project=. x.jl", "x.jl"),
            ("perl -w x.pl", "x.pl"),
            ("python3 -m pack.mod in.nc", "pack/mod.py"),
            ("python3 -m pack.sub", "pack/sub/__main__.py"),
            ("python3 app", "app/__main__.py"),
            ("mpiexec -n 4 python3 x.py", "x.py"),
            ("srun -p gpu -n 4 env A=1 python3 -u x.py", "x.py"),
            ("mpirun -np 2 ./model in.nc", "model"),
            ("gnuplot -e x=1 x.jl", "x.jl"),
            ("node -r esm x.jl", "x.jl"),
            ("timeout 10 nice -n 5 bash x.sh", "x.sh"),
            ("torchrun --nproc 2 x.py", "x.py"),
            ("python3 -m mpi4py x.py", "x.py"),
            ("singularity exec image.sif python3 x.py", "x.py"),
            ("sh -c python3␣x.py␣>␣out", "x.py"),
            ("bash -lc cd␣.;␣A=1␣./x.sh␣1", "x.sh"),
        ] {
            assert_eq!(found(line), [script], "{line}");
        }
        for line in [
            "python3 -c print() x.py",
            "perl -e 1 x.pl",
            "sh -c true",
            "cat x.py",
            "python3",
            "python3 none.py x.py",
        ] {
            assert_eq!(found(line), Vec::<String>::new(), "{line}");
        }
    }
}
