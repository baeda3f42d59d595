//! Describes in words how definitions of one object differ between ranks.

use std::borrow::Cow;

use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::NcType;

use super::names::Kind;
use super::packing::{MessageReader, put_bytes, put_u32};

/// Limit on the conflicts that a message names.
const REPORTED: usize = 20;

/// An object that ranks define differently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Conflict {
    pub kind: Kind,
    /// Rank and local number of its first definition: the order in which conflicts are reported.
    pub first: (u32, u32),
    pub text: String,
}

/// The conflicts that one rank found: it counts all, and keeps the first ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Conflicts {
    pub count: u64,
    list: Vec<Conflict>,
}

impl Conflicts {
    pub fn add(&mut self, conflict: Conflict) {
        self.count += 1;
        self.list.push(conflict);
        if self.list.len() >= 2 * REPORTED {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.list.sort();
        self.list.truncate(REPORTED);
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

    pub fn unpack(&mut self, from: &mut MessageReader<'_>) -> Result<()> {
        self.count += from.u64()?;
        for _ in 0..from.u32()? {
            let kind = from.kind()?;
            let first = (from.u32()?, from.u32()?);
            self.list.push(Conflict { kind, first, text: from.text()?.to_owned() });
        }
        Ok(())
    }

    /// The error that reports the conflicts; the same on every rank.
    pub fn into_result(mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        self.shorten();
        let texts: Vec<&str> = self.list.iter().map(|conflict| conflict.text.as_str()).collect();
        let mut message = texts.join("; ");
        let more = self.count - self.list.len() as u64;
        if more > 0 {
            message += &format!("; and {more} more");
        }
        let hint = "define an object identically on all ranks that define it, or give it a path of the rank's \
             own";
        Err(Code::DefinitionDiffers.error(message).with_hint(hint))
    }
}

/// "rank 3", "ranks 0, 2".
fn ranks_text(ranks: &[usize]) -> String {
    let first: Vec<String> = ranks.iter().take(8).map(usize::to_string).collect();
    let more = match ranks.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("rank{} {}{more}", if ranks.len() == 1 { "" } else { "s" }, first.join(", "))
}

/// Checks that ranks define at most one record dimension; `said` has its names, each with a rank that defines it.
///
/// Errors: `Conflict` that names all of them.
pub(super) fn check_records(said: &[(&str, usize)]) -> Result<()> {
    let mut different: Vec<(&str, usize)> = Vec::new();
    for one in said {
        if !different.iter().any(|(name, _)| *name == one.0) {
            different.push(*one);
        }
    }
    if different.len() <= 1 {
        return Ok(());
    }
    let list: Vec<String> = different.iter().map(|(name, rank)| format!("`{name}` on rank {rank}")).collect();
    Err(Code::DefinitionDiffers
        .error(format!(
            "a container has at most one record dimension, but ranks define {}: {}",
            list.len(),
            list.join(", ")
        ))
        .with_hint("give all but one of them a length, or define the same one on all ranks"))
}

/// The differences between definitions of one path by several ranks (or twice by one), packed without the path;
/// `None` if they agree.
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
        // The different values of this aspect, each with its ranks, in the order of their first rank.
        let mut said: Vec<(AspectValue<'_>, Vec<usize>)> = Vec::new();
        let mut what = "";
        for (rank, list) in &aspects {
            let one = list.get(at).map_or(AspectValue::Nothing, |(name, said)| {
                what = name;
                said.clone()
            });
            match said.iter_mut().find(|(other, _)| *other == one) {
                Some((_, ranks)) => ranks.push(*rank),
                None => said.push((one, vec![*rank])),
            }
        }
        if said.len() > 1 {
            let texts = texts(said.iter().map(|(said, _)| said));
            let ranks = said.iter().map(|(_, ranks)| ranks_text(ranks));
            let values = texts.iter().zip(ranks).map(|(text, ranks)| format!("{text} on {ranks}"));
            return Ok(Some(format!("{object}: {what} {}", values.collect::<Vec<_>>().join("; "))));
        }
    }
    Ok(Some(format!("{object}: defined differently")))
}

/// The value of one aspect of a definition.
#[derive(Debug, Clone, PartialEq)]
enum AspectValue<'a> {
    Nothing,
    Text(String),
    /// External bytes. They are compared themselves, not their texts: long texts are clipped, and all NaNs look
    /// alike.
    Value(NcType, Cow<'a, [u8]>),
}

/// An aspect's name and value.
type Aspect<'a> = (String, AspectValue<'a>);

fn aspects_of<'a>(kind: Kind, bytes: &'a [u8]) -> Result<Vec<Aspect<'a>>> {
    let mut from = MessageReader(bytes);
    let mut aspects: Vec<Aspect<'a>> = Vec::new();
    match kind {
        Kind::Dim => {
            let is_record = from.u8()? == 1;
            let len = from.u64()?;
            let text = if is_record { "unlimited".to_owned() } else { len.to_string() };
            aspects.push(("length".to_owned(), AspectValue::Text(text)));
        }
        Kind::Attr => {
            let ty = from.ty()?;
            aspects.push(("value".to_owned(), AspectValue::Value(ty, from.bytes()?.into())));
        }
        Kind::Var => {
            aspects.push(("type".to_owned(), AspectValue::Text(from.ty()?.name().to_owned())));
            let mut dims = Vec::new();
            for _ in 0..from.u32()? {
                dims.push(from.text()?);
            }
            aspects.push(("dimensions".to_owned(), AspectValue::Text(format!("({})", dims.join(", ")))));
            let attrs = from.attrs()?;
            let names: Vec<&str> = attrs.names.iter().collect();
            aspects.push(("attributes".to_owned(), AspectValue::Text(format!("[{}]", names.join(", ")))));
            for attr in attrs.iter() {
                let value = AspectValue::Value(attr.ty, attr.value.to_vec().into());
                aspects.push((format!("attribute `{}`", attr.name), value));
            }
        }
    }
    Ok(aspects)
}

/// Distinct texts for the values: values are shown from their beginning or, if that is the same, from where they
/// differ.
fn texts<'s>(said: impl Iterator<Item = &'s AspectValue<'s>> + Clone) -> Vec<String> {
    let all = |from: usize| -> Vec<String> { said.clone().map(|said| said.text(from)).collect() };
    let first = all(0);
    let is_repeated = |(i, text): (usize, &String)| first[..i].contains(text);
    if !first.iter().enumerate().any(is_repeated) {
        return first;
    }
    let values: Vec<&[u8]> = said.clone().filter_map(AspectValue::value).collect();
    let same = |pair: &[&[u8]]| pair[0].iter().zip(pair[1]).take_while(|(a, b)| a == b).count();
    all(values.windows(2).map(same).min().unwrap_or(0))
}

impl AspectValue<'_> {
    fn value(&self) -> Option<&[u8]> {
        match self {
            AspectValue::Value(_, value) => Some(value),
            _ => None,
        }
    }

    /// The value in words: the part after its first `from` bytes, and a little before it.
    fn text(&self, from: usize) -> String {
        match self {
            AspectValue::Nothing => "none".to_owned(),
            AspectValue::Text(text) => text.clone(),
            AspectValue::Value(NcType::Char, value) => shown_text(value, from),
            AspectValue::Value(ty, value) => shown_numbers(*ty, value, from / ty.size()),
        }
    }
}

/// Number of characters or numbers shown before a difference.
const BEFORE: usize = 3;

/// Some characters of a text.
fn shown_text(value: &[u8], from: usize) -> String {
    const FEW: usize = 40;
    let text = String::from_utf8_lossy(value);
    let first =
        String::from_utf8_lossy(&value[..from.min(value.len())]).chars().count().saturating_sub(BEFORE);
    let short: String = text.chars().skip(first).take(FEW).collect();
    let (before, more) = (first > 0, text.chars().nth(first + FEW).is_some());
    format!("{}{short:?}{}", if before { "..." } else { "" }, if more { "..." } else { "" })
}

/// A type and some numbers.
fn shown_numbers(ty: NcType, value: &[u8], from: usize) -> String {
    const FEW: usize = 6;
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
    let first = from.saturating_sub(BEFORE);
    let list: Vec<String> = value.chunks_exact(ty.size()).skip(first).take(FEW).map(element).collect();
    let left = (value.len() / ty.size()).saturating_sub(first + FEW);
    let before = if first > 0 { format!("... ({first} before) ") } else { String::new() };
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    format!("{} {before}{}{more}", ty.name(), list.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::packing::put_attr;
    use super::*;

    fn reported(ty: NcType, values: &[&[u8]]) -> String {
        let packed: Vec<Vec<u8>> = values
            .iter()
            .map(|value| {
                let mut out = Vec::new();
                put_attr(&mut out, "", ty, value);
                out.split_off(4) // without the name
            })
            .collect();
        let defined: Vec<(usize, &[u8])> = packed.iter().enumerate().map(|(i, p)| (i, &p[..])).collect();
        difference(Kind::Attr, "a", &defined).unwrap().unwrap_or_default()
    }

    #[test]
    fn long_values_are_shown_where_they_differ() {
        let ints = |last: i32| (0..20).chain([last]).flat_map(i32::to_be_bytes).collect::<Vec<u8>>();
        assert_eq!(
            reported(NcType::Int, &[&ints(7), &ints(8), &ints(7)]),
            "global attribute `a`: value int ... (17 before) 17 18 19 7 on ranks 0, 2; \
             int ... (17 before) 17 18 19 8 on rank 1"
        );
        let text = |end: &str| format!("{}{end}", "é".repeat(50));
        assert_eq!(
            reported(NcType::Char, &[text("one").as_bytes(), text("o").as_bytes()]),
            "global attribute `a`: value ...\"ééone\" on rank 0; ...\"ééo\" on rank 1"
        );
        assert_eq!(
            reported(NcType::Char, &[b"kelvin", b"K"]),
            "global attribute `a`: value \"kelvin\" on rank 0; \"K\" on rank 1"
        );
    }

    #[test]
    fn values_that_look_alike_are_reported_with_their_ranks() {
        let (quiet, other) = (f64::NAN.to_be_bytes(), (f64::NAN.to_bits() | 1).to_be_bytes());
        let text = reported(NcType::Double, &[&quiet, &other]);
        assert!(text.contains("on rank 0; ") && text.contains("on rank 1"), "{text}");
        assert_eq!(reported(NcType::Double, &[&quiet, &quiet]), "");
    }
}
