//! How definitions of one object differ between ranks, in words.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attr, NcType};

use super::names::Kind;
use super::packing::{Reader, put_bytes, put_u32};

/// How many conflicts a message tells of.
const TOLD: usize = 20;

/// An object that ranks define differently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Conflict {
    pub kind: Kind,
    /// Rank and local number of its first definition: the order in which conflicts are told.
    pub first: (u32, u32),
    pub text: String,
}

/// Conflicts found by one rank: all counted, the first ones kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Conflicts {
    pub count: u64,
    list: Vec<Conflict>,
}

impl Conflicts {
    pub fn add(&mut self, conflict: Conflict) {
        self.count += 1;
        self.list.push(conflict);
        if self.list.len() >= 2 * TOLD {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.list.sort();
        self.list.truncate(TOLD);
    }

    pub fn pack(&mut self, out: &mut Vec<u8>) {
        self.shorten();
        out.extend_from_slice(&self.count.to_le_bytes());
        put_u32(out, self.list.len() as u32);
        for conflict in &self.list {
            out.push(conflict.kind as u8);
            put_u32(out, conflict.first.0);
            put_u32(out, conflict.first.1);
            put_bytes(out, conflict.text.as_bytes());
        }
    }

    pub fn unpack(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.count += from.u64()?;
        for _ in 0..from.u32()? {
            let kind = from.kind()?;
            let first = (from.u32()?, from.u32()?);
            self.list.push(Conflict { kind, first, text: from.text()?.to_owned() });
        }
        Ok(())
    }

    /// The error that tells of them; the same on every rank.
    pub fn into_result(mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        self.shorten();
        let texts: Vec<&str> = self.list.iter().map(|conflict| conflict.text.as_str()).collect();
        let mut message = texts.join("; ");
        let untold = self.count - self.list.len() as u64;
        if untold > 0 {
            message += &format!("; and {untold} more");
        }
        let hint =
            "define an object equally on all ranks that define it, or give it a path of the rank's own";
        Err(Error::conflict(message).with_hint(hint))
    }
}

/// "rank 3", "ranks 0, 2".
fn ranks_text(ranks: &[usize]) -> String {
    let told: Vec<String> = ranks.iter().take(8).map(usize::to_string).collect();
    let more = match ranks.len() - told.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("rank{} {}{more}", if ranks.len() == 1 { "" } else { "s" }, told.join(", "))
}

/// What is wrong with definitions of one path by several ranks (or twice by one), packed without the path;
/// `None` where they agree.
pub(super) fn difference(kind: Kind, path: &str, defined: &[(usize, &[u8])]) -> Result<Option<String>> {
    let object = format!("{} `{path}`", kind.word());
    if let Some(pair) = defined.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Ok(Some(format!("{object}: defined twice on rank {}", pair[0].0)));
    }
    if defined.iter().all(|(_, bytes)| *bytes == defined[0].1) {
        return Ok(None);
    }
    let mut aspects = Vec::with_capacity(defined.len());
    for (rank, bytes) in defined {
        aspects.push((*rank, aspects_of(kind, bytes)?));
    }
    let most = aspects.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
    for at in 0..most {
        // Texts of this aspect, each with the ranks that say so, in the order of their first rank.
        let mut said: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut what = "";
        for (rank, list) in &aspects {
            let text = list.get(at).map_or("none", |(name, text)| {
                what = name;
                text.as_str()
            });
            match said.iter_mut().find(|(other, _)| *other == text) {
                Some((_, ranks)) => ranks.push(*rank),
                None => said.push((text, vec![*rank])),
            }
        }
        if said.len() > 1 {
            let said = said.iter().map(|(text, ranks)| format!("{text} on {}", ranks_text(ranks)));
            return Ok(Some(format!("{object}: {what} {}", said.collect::<Vec<_>>().join("; "))));
        }
    }
    Ok(Some(format!("{object}: defined differently")))
}

fn aspects_of(kind: Kind, bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let mut from = Reader(bytes);
    let mut aspects = Vec::new();
    match kind {
        Kind::Dim => {
            let is_record = from.u8()? == 1;
            let len = from.u64()?;
            let text = if is_record { "unlimited".to_owned() } else { len.to_string() };
            aspects.push(("length".to_owned(), text));
        }
        Kind::Attr => {
            let ty = from.ty()?;
            aspects.push(("value".to_owned(), shown(ty, from.bytes()?)));
        }
        Kind::Var => {
            aspects.push(("type".to_owned(), from.ty()?.name().to_owned()));
            let mut dims = Vec::new();
            for _ in 0..from.u32()? {
                dims.push(from.text()?);
            }
            aspects.push(("dimensions".to_owned(), format!("({})", dims.join(", "))));
            let attrs = from.attrs()?;
            let names: Vec<&str> = attrs.names.iter().collect();
            aspects.push(("attributes".to_owned(), format!("[{}]", names.join(", "))));
            for attr in attrs.iter() {
                aspects.push((format!("attribute `{}`", attr.name), shown(attr.ty, attr.value)));
            }
        }
    }
    Ok(aspects)
}

/// A value's type and first elements.
fn shown(ty: NcType, value: &[u8]) -> String {
    const FEW: usize = 6;
    let attr = Attr { name: "", ty, value };
    if ty == NcType::Char {
        let text = String::from_utf8_lossy(value);
        let short: String = text.chars().take(40).collect();
        let more = if short.len() < text.len() { "..." } else { "" };
        return format!("{short:?}{more}");
    }
    let element = |bytes: &[u8]| {
        let mut wide = [0; 8];
        let signed = matches!(ty, NcType::Byte | NcType::Short | NcType::Int | NcType::Int64);
        wide.fill(if signed && bytes[0] >= 0x80 { 0xff } else { 0 });
        wide[8 - bytes.len()..].copy_from_slice(bytes);
        let bits = u64::from_be_bytes(wide);
        match ty {
            NcType::Float => f32::from_bits(bits as u32).to_string(),
            NcType::Double => f64::from_bits(bits).to_string(),
            _ if signed => (bits as i64).to_string(),
            _ => bits.to_string(),
        }
    };
    let list: Vec<String> = value.chunks_exact(ty.size()).take(FEW).map(element).collect();
    let more = if attr.len() > FEW { format!(" and {} more", attr.len() - FEW) } else { String::new() };
    format!("{} {}{more}", ty.name(), list.join(" "))
}
