//! A reader of headers for tests.
use fieldstone_format::netcdf::{Header, NcType, Version};

struct At<'a>(&'a [u8], usize, Version);
impl At<'_> {
    fn take(&mut self, n: usize) -> &[u8] {
        self.1 += n;
        &self.0[self.1 - n..self.1]
    }
    fn number(&mut self, n: usize) -> u64 {
        self.take(n).iter().fold(0, |v, b| v << 8 | u64::from(*b))
    }
    fn size(&mut self) -> u64 {
        self.number(self.2.size_width())
    }
    fn name(&mut self) -> String {
        let n = self.size() as usize;
        let s = String::from_utf8(self.take(n).to_vec()).unwrap();
        self.take((4 - n % 4) % 4);
        s
    }
    fn count(&mut self) -> u64 {
        self.number(4);
        self.size()
    }
    fn attrs(&mut self) -> Vec<(String, NcType, Vec<u8>)> {
        (0..self.count())
            .map(|_| {
                let name = self.name();
                let ty = NcType::from_code(self.number(4) as u32).unwrap();
                let n = self.size() as usize * ty.size();
                let value = self.take(n).to_vec();
                self.take((4 - n % 4) % 4);
                (name, ty, value)
            })
            .collect()
    }
}

/// A whole header.
pub fn header(bytes: &[u8]) -> Header {
    let version = Version::from_byte(bytes[3]).unwrap();
    let mut at = At(bytes, 4, version);
    let mut header = Header::new(version);
    let width = version.size_width();
    let n = at.size();
    header.numrecs = (n != if width == 4 { u64::from(u32::MAX) } else { u64::MAX }).then_some(n);
    for _ in 0..at.count() {
        let name = at.name();
        match at.size() {
            0 => header.dims.push_record(&name),
            n => header.dims.push(&name, n),
        };
    }
    for (name, ty, value) in at.attrs() {
        header.attrs.push(&name, ty, &value);
    }
    for _ in 0..at.count() {
        let name = at.name();
        let dims: Vec<u32> = (0..at.size()).map(|_| at.size() as u32).collect();
        let attrs = at.attrs();
        let ty = NcType::from_code(at.number(4) as u32).unwrap();
        header.vars.push(&name, ty, &dims);
        for (name, ty, value) in attrs {
            header.vars.attrs_of_last(&name, ty, &value);
        }
        let vsize = at.size();
        header.vars.vsizes.push(vsize);
        let begin = at.number(version.offset_width());
        header.vars.begins.push(begin);
    }
    header
}
