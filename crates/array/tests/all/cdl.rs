//! CDL compared with that of ncdump, byte for byte, on real files.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use fieldstone_array::container::cdl::{self, Options, Verbatim};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::parse::{self, Source};
use fieldstone_testkit::{require::program, samples::sample};

/// A file as a source for the header parsers.
struct Real(File);

impl Source for Real {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64).unwrap() {
                0 => break,
                more => done += more,
            }
        }
        Ok(done)
    }
    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata().unwrap().len())
    }
}

/// Our output for a file.
fn ours(path: &Path, options: &Options) -> Result<Vec<u8>> {
    let file = Real(File::open(path).unwrap());
    let metadata = Verbatim::new(parse::header(&file)?.0, file.len()?)?;
    let mut text = Vec::new();
    cdl::write::<Error>(&metadata, &|buffer, offset| file.read_at(buffer, offset), options, &mut |part| {
        text.extend_from_slice(part);
        Ok(())
    })?;
    Ok(text)
}

fn ncdump(path: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let done = Command::new("ncdump").args(arguments).arg(path).output().unwrap();
    done.status.success().then_some(done.stdout)
}

fn first_difference(ours: &[u8], theirs: &[u8]) -> String {
    let (ours, theirs) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
    let pairs = ours.lines().zip(theirs.lines());
    match pairs.enumerate().find(|(_, (a, b))| a != b) {
        Some((i, (a, b))) => format!("line {}\n  ours   {a:?}\n  ncdump {b:?}", i + 1),
        None => format!("{} and {} lines", ours.lines().count(), theirs.lines().count()),
    }
}

/// Our output and ncdump's agree for every netCDF classic file of a folder that ncdump accepts, for the header alone
/// and the whole file.
fn folder_is_printed_alike(folder: &str, least: usize) {
    let Some(folder) = sample(folder) else { return };
    if !program("ncdump") {
        return;
    }
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let classic = std::fs::read(&path).is_ok_and(|b| b.starts_with(b"CDF") && b.len() < 64 << 20);
        if !classic {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let name = name.rsplit_once('.').map_or(name, |(name, _)| name).to_owned();
        for (arguments, header_only) in [(&["-h"][..], true), (&[], false)] {
            let Some(theirs) = ncdump(&path, arguments) else { continue };
            seen += 1;
            let options = Options { name: name.clone(), header_only, vars: None };
            match ours(&path, &options) {
                Ok(ours) if ours == theirs => {}
                Ok(ours) => wrong.push(format!("{}: {}", path.display(), first_difference(&ours, &theirs))),
                Err(error) => wrong.push(format!("{}: {error}", path.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {seen} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen >= least, "only {seen} texts were compared");
    println!("{seen} texts are alike");
}

#[test]
fn corpus_is_printed_as_ncdump_prints_it() {
    folder_is_printed_alike("netcdf-classic", 20);
}

#[test]
fn meshes_are_printed_as_ncdump_prints_them() {
    folder_is_printed_alike("mesh", 14);
}
