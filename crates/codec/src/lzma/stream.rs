//! Compressing with liblzma, its tables in huge pages; the safe wrapper cannot be told where to allocate.

#![expect(
    unsafe_code,
    reason = "the safe wrapper does not export streams with an allocator"
)]

use core::ffi::c_void;

use durin_format::{Error, Result};
use liblzma_sys as sys;

use super::filters::Filter;
use crate::output::reserve_total;
use crate::tables;

/// What an encoder is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// A preset, possibly with `LZMA_PRESET_EXTREME`.
    pub(super) preset: u32,
    pub(super) dict_len: Option<u32>,
    pub(super) mode: Option<sys::lzma_mode>,
    pub(super) match_finder: Option<sys::lzma_match_finder>,
    pub(super) nice: Option<u32>,
    pub(super) depth: Option<u32>,
    pub(super) lc: u32,
    pub(super) lp: u32,
    pub(super) pb: u32,
    /// What is done to the data before.
    pub(super) filter: Option<Filter>,
}

/// What is around the compressed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// An `.xz` stream with CRC64.
    Xz,
    /// Nothing: for trials.
    Raw,
}

/// The memory of an encoder, which is used again for each block as far as it fits.
#[derive(Debug)]
pub(super) struct Compressor(Box<sys::lzma_stream>);

// SAFETY: a stream may be used by any thread, one at a time, and this type lends it only through `&mut`.
unsafe impl Send for Compressor {}

struct Allocator(sys::lzma_allocator);

// SAFETY: never changed, and its functions may be called by any thread; there is nothing behind the pointer.
unsafe impl Sync for Allocator {}

static ALLOCATOR: Allocator = Allocator(sys::lzma_allocator {
    alloc: Some(allocate),
    free: Some(release),
    opaque: std::ptr::null_mut(),
});

extern "C" fn allocate(_: *mut c_void, count: usize, len: usize) -> *mut c_void {
    count
        .checked_mul(len)
        .map_or(std::ptr::null_mut(), tables::allocate)
}

extern "C" fn release(_: *mut c_void, start: *mut c_void) {
    // SAFETY: the library gives back only what it got from `allocate`, once.
    unsafe { tables::release(start) }
}

impl Compressor {
    pub(super) fn new() -> Self {
        // SAFETY: integers and pointers, for all of which zero is valid; all zero is `LZMA_STREAM_INIT`.
        let mut stream: sys::lzma_stream = unsafe { std::mem::zeroed() };
        stream.allocator = &raw const ALLOCATOR.0;
        Self(Box::new(stream))
    }

    /// Finds out whether settings go together.
    pub(super) fn start(&mut self, settings: &Settings, container: Container) -> Result<()> {
        // SAFETY: as above; the options are integers and pointers.
        let mut options: sys::lzma_options_lzma = unsafe { std::mem::zeroed() };
        // SAFETY: the options are valid to be written.
        let unknown = unsafe { sys::lzma_lzma_preset(&raw mut options, settings.preset) };
        if unknown != 0 {
            return Err(Error::invalid_input("lzma: no such level"));
        }
        options.dict_size = settings.dict_len.unwrap_or(options.dict_size);
        options.mode = settings.mode.unwrap_or(options.mode);
        options.mf = settings.match_finder.unwrap_or(options.mf);
        options.nice_len = settings.nice.unwrap_or(options.nice_len);
        options.depth = settings.depth.unwrap_or(options.depth);
        options.lc = settings.lc;
        options.lp = settings.lp;
        options.pb = settings.pb;
        let filter = |id, options| sys::lzma_filter { id, options };
        let null = std::ptr::null_mut();
        let end = || filter(sys::LZMA_VLI_UNKNOWN, null);
        let lzma = filter(sys::LZMA_FILTER_LZMA2, (&raw mut options).cast());
        // SAFETY: as above.
        let mut delta: sys::lzma_options_delta = unsafe { std::mem::zeroed() };
        let filters = match settings.filter {
            Some(front) => {
                let front_options = match front.distance() {
                    Some(distance) => {
                        delta.dist = distance;
                        (&raw mut delta).cast()
                    }
                    None => null,
                };
                [filter(front.id(), front_options), lzma, end()]
            }
            None => [lzma, end(), end()],
        };
        let stream = &raw mut *self.0;
        // SAFETY: the stream is valid, the filters are ended as the library wants, and it copies them and their options.
        check(unsafe {
            match container {
                Container::Xz => {
                    sys::lzma_stream_encoder(stream, filters.as_ptr(), sys::LZMA_CHECK_CRC64)
                }
                Container::Raw => sys::lzma_raw_encoder(stream, filters.as_ptr()),
            }
        })?;
        Ok(())
    }

    /// Replaces `out` by the compressed `data`.
    pub(super) fn compress(
        &mut self,
        settings: &Settings,
        container: Container,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.start(settings, container)?;
        out.clear();
        // LZMA2 stores what does not shrink in chunks of 64 KiB with 3 bytes each.
        reserve_total(out, data.len() + data.len() / 4096 + 256)?;
        let stream = &mut *self.0;
        stream.next_in = data.as_ptr();
        stream.avail_in = data.len();
        loop {
            let room = out.spare_capacity_mut();
            let room_len = room.len();
            stream.next_out = room.as_mut_ptr().cast();
            stream.avail_out = room_len;
            // SAFETY: both ranges are valid for as many bytes as the stream says, and do not overlap; `data` is borrowed
            // until this function ends, after which the pointers are not used again.
            let status = unsafe { sys::lzma_code(stream, sys::LZMA_FINISH) };
            let len = out.len() + (room_len - stream.avail_out);
            // SAFETY: the library has written that many bytes from the start of the room.
            unsafe { out.set_len(len) };
            if check(status)? == sys::LZMA_STREAM_END {
                return Ok(());
            }
            reserve_total(out, len + data.len() / 16 + 4096)?;
        }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the stream is valid and not used again.
        unsafe { sys::lzma_end(&raw mut *self.0) };
    }
}

fn check(status: sys::lzma_ret) -> Result<sys::lzma_ret> {
    match status {
        sys::LZMA_OK | sys::LZMA_STREAM_END => Ok(status),
        sys::LZMA_MEM_ERROR | sys::LZMA_MEMLIMIT_ERROR => {
            Err(Error::limit("lzma: no memory for the encoder"))
        }
        sys::LZMA_OPTIONS_ERROR | sys::LZMA_PROG_ERROR => Err(Error::invalid_input(
            "lzma: options that do not go together (lc + lp is at most 4)",
        )),
        _ => Err(Error::limit(format!("lzma: the encoder failed ({status})"))),
    }
}
