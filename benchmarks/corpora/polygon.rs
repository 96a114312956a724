//! Writes the vertex list of an n-sided regular polygon as Rust debug text, the data format of the
//! blog benchmark: three vertices per side, random colours, a constant centre vertex.
use std::io::Write;
struct Rng(u64);
impl Rng { fn next(&mut self) -> f32 { self.0 ^= self.0 << 13; self.0 ^= self.0 >> 7; self.0 ^= self.0 << 17; ((self.0 >> 40) as f32) / 16777216.0 } }
fn main() {
    let limit: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let sides: u64 = limit / 277;
    let mut r = Rng(0x9E3779B97F4A7C15);
    let out = std::io::stdout(); let mut w = std::io::BufWriter::with_capacity(1 << 20, out.lock());
    let c = [r.next(), r.next(), r.next()];
    let pos = |i: u64| { let a = (i as f32) * (std::f32::consts::TAU / sides as f32); [0.5 * a.cos(), 0.5 * a.sin(), 0.0f32] };
    write!(w, "[").unwrap();
    for i in 0..sides {
        if i > 0 { write!(w, ", ").unwrap(); }
        for v in 0..2 { write!(w, "Vertex {{ position: Pos({:?}), color: Col({:?}) }}, ", pos(i + v), [r.next(), r.next(), r.next()]).unwrap(); }
        write!(w, "Vertex {{ position: Pos([0.0, 0.0, 0.0]), color: Col({:?}) }}", c).unwrap();
    }
    writeln!(w, "]").unwrap();
}
