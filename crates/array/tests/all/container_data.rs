//! Elements in and out, compared with a model that keeps the whole file as bytes and finds every element by the
//! definition of the format, one by one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::fill::write_shared;
use fieldstone_array::container::access::{
    FillVar, Get, PastEnd, Put, Records, Selection, Target, get, get_all, put, put_all,
};
use fieldstone_array::container::{DimInfo, VarInfo};
use fieldstone_core::Result;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::{Comm, FileMode, Team, TeamFile, threads};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::netcdf::fill::{ATTRIBUTE, default_fill};
use fieldstone_format::netcdf::{Attrs, NcType, Version, pad4};
use fieldstone_testkit::{Random, seeded};

/// A small whole number as one element.
fn element(ty: NcType, value: u8) -> Vec<u8> {
    match ty {
        NcType::Byte | NcType::Char | NcType::UByte => vec![value],
        NcType::Short | NcType::UShort => u16::from(value).to_be_bytes().into(),
        NcType::Int | NcType::UInt => u32::from(value).to_be_bytes().into(),
        NcType::Int64 | NcType::UInt64 => u64::from(value).to_be_bytes().into(),
        NcType::Float => f32::from(value).to_be_bytes().into(),
        NcType::Double => f64::from(value).to_be_bytes().into(),
    }
}

fn native(mut big: Vec<u8>) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        big.reverse();
    }
    big
}

fn var(name: &str, ty: NcType, lens: &[u64], is_record: bool) -> VarInfo {
    let dim = |(i, len): (usize, &u64)| DimInfo {
        id: i as u64,
        name: format!("d{i}"),
        len: *len,
        is_record: is_record && i == 0,
    };
    let dims = lens.iter().enumerate().map(dim).collect();
    VarInfo { id: 0, name: name.into(), ty, dims, attrs: Attrs::default(), begin: 0, record_stride: 0 }
}

/// Bytes of a variable, or of one of its records.
fn bytes(var: &VarInfo) -> u64 {
    var.dims.iter().filter(|dim| !dim.is_record).map(|dim| dim.len).product::<u64>() * var.ty.size() as u64
}

/// Gives variables their positions: fixed ones first, then records.
fn lay_out(vars: &mut [VarInfo], begin: u64) {
    let mut at = begin;
    let records = vars.iter().filter(|var| var.is_record()).count();
    for var in vars.iter_mut().filter(|var| !var.is_record()) {
        var.begin = at;
        at += pad4(bytes(var)).unwrap();
    }
    let begin = at;
    for var in vars.iter_mut().filter(|var| var.is_record()) {
        var.begin = at;
        at += if records == 1 { bytes(var) } else { pad4(bytes(var)).unwrap() };
    }
    vars.iter_mut().filter(|var| var.is_record()).for_each(|var| var.record_stride = at - begin);
}

/// The expected file.
#[derive(Default)]
struct Model {
    image: Vec<u8>,
    records: u64,
}

impl Model {
    fn set(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if self.image.len() < end {
            self.image.resize(end, 0);
        }
        self.image[offset as usize..end].copy_from_slice(bytes);
    }
    fn at(&self, offset: u64, len: usize) -> Vec<u8> {
        (0..len).map(|i| self.image.get(offset as usize + i).copied().unwrap_or(0)).collect()
    }
    /// Fills from `offset` on, including padding.
    fn fill(&mut self, var: &VarInfo, record: u64) {
        let value = var.attrs.find(ATTRIBUTE).map_or(default_fill(var.ty), |attr| attr.value).to_vec();
        let len = if var.record_stride == bytes(var) { bytes(var) } else { pad4(bytes(var)).unwrap() };
        let value: Vec<u8> = value.iter().copied().cycle().take(len as usize).collect();
        self.set(var.begin + record * var.record_stride, &value);
    }
}

/// Offsets of the elements of a box, by the definition of the format.
fn offsets(var: &VarInfo, selection: &Selection) -> Vec<u64> {
    let Selection { start, count, stride } = selection;
    let (mut found, mut index) = (Vec::new(), vec![0; count.len()]);
    if count.contains(&0) {
        return found;
    }
    loop {
        let mut offset = var.begin;
        for (i, dim) in var.dims.iter().enumerate() {
            let inner: u64 = var.dims[i + 1..].iter().map(|dim| dim.len).product();
            let step = if dim.is_record { var.record_stride } else { inner * var.ty.size() as u64 };
            offset += (start[i] + index[i] * stride.get(i).unwrap_or(&1)) * step;
        }
        found.push(offset);
        let Some(i) = (0..count.len()).rev().find(|i| index[*i] + 1 < count[*i]) else { return found };
        index[i] += 1;
        index[i + 1..].fill(0);
    }
}

fn random_box(random: &mut Random, var: &VarInfo, records: u64) -> Selection {
    let mut selection = Selection::default();
    for dim in &var.dims {
        let len = if dim.is_record { records } else { dim.len };
        let stride = 1 + [0, 0, 0, 1, 2][random.below(5) as usize];
        let start = if random.one_in(3) { 0 } else { random.below(len + 1) };
        let left = (len - start).div_ceil(stride);
        selection.start.push(start);
        selection.count.push(if random.one_in(2) { left } else { random.below(left + 1) });
        selection.stride.push(stride);
    }
    selection
}

fn memory_type(random: &mut Random, var: &VarInfo) -> NcType {
    match var.ty {
        NcType::Char => NcType::Char,
        ty if random.one_in(2) => ty,
        _ => NcType::ALL[[0, 2, 3, 4, 5, 6, 7, 8, 9, 10][random.below(10) as usize]],
    }
}

fn random_vars(random: &mut Random) -> Vec<VarInfo> {
    let mut vars: Vec<VarInfo> = (0..1 + random.below(5))
        .map(|i| {
            let rank = random.below(4) as usize;
            let is_record = rank > 0 && random.one_in(2);
            let lens: Vec<u64> = (0..rank).map(|_| [1, 2, 3, 5, 9, 40][random.below(6) as usize]).collect();
            let ty = NcType::ALL[random.below(11) as usize];
            let mut var = var(&format!("v{i}"), ty, &lens, is_record);
            if random.one_in(2) {
                var.attrs.push(ATTRIBUTE, ty, &element(ty, 77));
            }
            var
        })
        .collect();
    lay_out(&mut vars, 64);
    vars
}

fn create(comm: Arc<dyn Comm>) -> TeamFile {
    Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew).unwrap()
}

/// The expected contents of a request.
struct Wanted {
    var: usize,
    selection: Selection,
    ty: NcType,
    data: Vec<u8>,
}

/// Random calls of all kinds on one rank of a file; every rank knows the calls of all others.
fn play(comm: Arc<dyn Comm>, seed: u64, steps: usize) -> Result<Model> {
    let mut random = seeded(seed);
    let mut vars = random_vars(&mut random);
    let file = create(comm);
    let (team, me) = (file.team().clone(), file.team().rank());
    let version = Version::Cdf5;
    let records = Records::new(0, version);
    let is_filled = random.one_in(2);
    let mut model = Model::default();
    // Rank 0 takes care of fills that others may have to write.
    let mine = |var: &&VarInfo| me == 0 && var.is_record();
    let filled: Vec<FillVar> = vars.iter().filter(mine).map(|var| FillVar::of(var).unwrap()).collect();
    if is_filled {
        let fixed = vars.iter().filter(|var| !var.is_record());
        let jobs = fixed.clone().filter(|_| me == 0).filter_map(|var| FillVar::of(var).unwrap().job());
        write_shared(&file, Ok(jobs.collect()))?;
        fixed.for_each(|var| model.fill(var, 0));
    }
    let target = Target {
        file: &file,
        version,
        records: &records,
        filled: is_filled.then_some(&filled[..]),
        past_end: PastEnd::Zeros,
    };
    for step in 0..steps {
        for var in &mut vars {
            if let Some(dim) = var.dims.first_mut().filter(|dim| dim.is_record) {
                dim.len = 99; // meaningless here: the number of records is the target's
            }
        }
        let collective = random.one_in(2) || (is_filled && team.size() > 1);
        // Either all ranks write, with equal values in their overlaps, or one writes, and its later request wins.
        let only = (!random.one_in(2)).then(|| random.below(team.size() as u64) as usize);
        let mut own = Vec::new();
        let mut grown = model.records;
        let mut changes = Vec::new();
        for rank in 0..team.size() {
            for i in 0..random.below(4) {
                let number = random.below(vars.len() as u64) as usize;
                let var = &vars[number];
                let more = if random.one_in(2) { random.below(4) } else { 0 };
                let selection = random_box(&mut random, var, model.records + more);
                let ty = memory_type(&mut random, var);
                if only.is_some_and(|only| only != rank) {
                    continue;
                }
                let (mut data, places) = (Vec::new(), offsets(var, &selection));
                for offset in &places {
                    let salt = if only.is_some() { i * 31 } else { 0 };
                    let value = 1 + ((offset * 7 + step as u64 * 13 + salt) % 100) as u8;
                    data.extend(native(element(ty, value)));
                    changes.push((*offset, element(var.ty, value)));
                }
                if var.is_record() && !places.is_empty() {
                    let last = selection.start[0] + (selection.count[0] - 1) * selection.stride[0];
                    grown = grown.max(last + 1);
                }
                if rank == me {
                    own.push(Wanted { var: number, selection, ty, data });
                }
            }
        }
        if is_filled {
            for record in model.records..grown {
                vars.iter().filter(|var| var.is_record()).for_each(|var| model.fill(var, record));
            }
        }
        model.records = grown;
        changes.iter().for_each(|(offset, bytes)| model.set(*offset, bytes));
        let puts: Vec<Put<'_>> = own
            .iter()
            .map(|w| Put { var: &vars[w.var], selection: &w.selection, data: &w.data, ty: w.ty })
            .collect();
        if collective {
            put_all(&target, Ok(&puts))?;
            assert_eq!(records.get(), model.records, "seed {seed}");
        } else {
            put(&target, &puts)?;
            assert_eq!(records.agree(&team, "records")?, model.records, "seed {seed}");
        }
        team.barrier("written")?;
        let mut wanted: Vec<Wanted> = (0..random.below(4))
            .map(|_| {
                let number = random.below(vars.len() as u64) as usize;
                let selection = random_box(&mut random, &vars[number], model.records);
                let ty = memory_type(&mut random, &vars[number]);
                let n: u64 = selection.count.iter().product();
                Wanted { var: number, selection, ty, data: vec![0xAA; n as usize * ty.size()] }
            })
            .collect();
        let mut gets: Vec<Get<'_>> = wanted
            .iter_mut()
            .map(|w| Get { var: &vars[w.var], selection: &w.selection, into: &mut w.data, ty: w.ty })
            .collect();
        // Fill values do not always fit; another test checks what they become.
        let outcome =
            if random.one_in(2) { get_all(&target, Ok(&mut gets)) } else { get(&target, &mut gets) };
        let unfit = outcome.is_err_and(|error| error.message().contains("does not fit"));
        assert!(!unfit || is_filled, "seed {seed}");
        for w in &wanted {
            let size = vars[w.var].ty.size();
            for (offset, found) in offsets(&vars[w.var], &w.selection).iter().zip(w.data.chunks(w.ty.size()))
            {
                let stored = model.at(*offset, size);
                let value = (0..=100u8).find(|value| element(vars[w.var].ty, *value) == stored);
                if let Some(value) = value {
                    assert_eq!(found, native(element(w.ty, value)), "seed {seed} step {step} at {offset}");
                }
            }
        }
        team.barrier("read")?;
    }
    let mut image = vec![0; model.image.len()];
    let n = file.read_at(&mut image, 0)?;
    assert!(image[n..].iter().all(|byte| *byte == 0));
    let differs = (0..image.len()).find(|i| image[*i] != model.image[*i]);
    assert_eq!(differs, None, "seed {seed}");
    assert!(file.len()? <= model.image.len() as u64, "seed {seed}");
    Ok(model)
}

#[test]
fn one_rank_against_the_model() {
    let mut records = 0;
    for seed in 0..400 {
        let comm = Arc::new(SingleComm::new(SimWorld::memory().disk));
        records += play(comm, seed, 12).unwrap().records;
    }
    assert!(records > 400, "{records}");
}

#[test]
fn many_ranks_against_the_model() {
    for seed in 0..60 {
        let ranks = [2, 3, 4, 8][seed as usize % 4];
        let disk = SimWorld::memory().disk;
        let results = threads::run(ranks, Some(seed), disk, threads::Faults::none(), |comm| {
            play(comm, 1000 + seed, 8).map(|_| ())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
