//! Parameters: numbers of ECMWF's parameter database and the short names people type.

/// Short names that stand for a number. Any other name is kept as text, exactly.
const NAMES: &[(&str, i64)] = &[
    ("10fg", 49),
    ("10u", 165),
    ("10v", 166),
    ("100u", 228_246),
    ("100v", 228_247),
    ("2d", 168),
    ("2t", 167),
    ("al", 174),
    ("blh", 159),
    ("cape", 59),
    ("ci", 31),
    ("cp", 143),
    ("d", 155),
    ("gh", 156),
    ("hcc", 188),
    ("lcc", 186),
    ("lnsp", 152),
    ("lsm", 172),
    ("lsp", 142),
    ("mcc", 187),
    ("mn2t", 202),
    ("msl", 151),
    ("mwd", 140_230),
    ("mwp", 140_232),
    ("mx2t", 201),
    ("o3", 203),
    ("pp1d", 140_231),
    ("pv", 60),
    ("q", 133),
    ("r", 157),
    ("sd", 141),
    ("sf", 144),
    ("skt", 235),
    ("slhf", 147),
    ("sp", 134),
    ("sr", 173),
    ("sshf", 146),
    ("ssr", 176),
    ("ssrd", 169),
    ("sst", 34),
    ("stl1", 139),
    ("str", 177),
    ("strd", 175),
    ("swh", 140_229),
    ("swvl1", 39),
    ("t", 130),
    ("tcc", 164),
    ("tco3", 206),
    ("tcw", 136),
    ("tcwv", 137),
    ("tp", 228),
    ("tsr", 178),
    ("ttr", 179),
    ("u", 131),
    ("v", 132),
    ("vo", 138),
    ("w", 135),
    ("z", 129),
];

/// The parameter number of `130`, `130.128` (table 128 is the default) or `229.140` (140229), or of
/// a short name. `None` for other text, also for tables below 128: those are not ECMWF's.
pub(crate) fn number(text: &str) -> Option<i64> {
    if let Some((param, table)) = text.split_once('.') {
        let (param, table) = (super::calendar::digits(param)?, super::calendar::digits(table)?);
        if param > 999 || !(128..=999).contains(&table) {
            return None;
        }
        let table = if table == 128 { 0 } else { i64::from(table) };
        return Some(table * 1000 + i64::from(param));
    }
    if let Some(number) = super::calendar::digits(text) {
        return Some(i64::from(number));
    }
    let lower = text.to_ascii_lowercase();
    NAMES.iter().find(|(name, _)| *name == lower).map(|(_, number)| *number)
}
