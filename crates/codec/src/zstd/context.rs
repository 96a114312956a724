//! A compression context whose tables are in huge pages; the safe wrapper cannot be told where to allocate.

#![expect(
    unsafe_code,
    reason = "the safe wrapper does not export contexts with an allocator"
)]

use core::ffi::c_void;
use std::ptr::NonNull;

use durin_format::{Error, Result};
use zstd_safe::zstd_sys::{self, ZSTD_CCtx, ZSTD_cParameter};

use super::failure;
use crate::output::reserve_total;
use crate::tables;

pub(super) struct Context(NonNull<ZSTD_CCtx>);

// SAFETY: a context may be used by any thread, one at a time, and this type lends it only through `&mut`.
unsafe impl Send for Context {}

extern "C" fn allocate(_: *mut c_void, len: usize) -> *mut c_void {
    tables::allocate(len)
}

extern "C" fn release(_: *mut c_void, start: *mut c_void) {
    // SAFETY: the library gives back only what it got from `allocate`, once.
    unsafe { tables::release(start) }
}

impl Context {
    pub(super) fn new() -> Result<Self> {
        let memory = zstd_sys::ZSTD_customMem {
            customAlloc: Some(allocate),
            customFree: Some(release),
            opaque: std::ptr::null_mut(),
        };
        // SAFETY: both functions do what the library asks of an allocator, from any thread.
        let context = unsafe { zstd_sys::ZSTD_createCCtx_advanced(memory) };
        NonNull::new(context)
            .map(Self)
            .ok_or_else(|| Error::limit("zstd: no memory"))
    }

    /// Sets a parameter for all frames to come.
    pub(super) fn set(&mut self, parameter: ZSTD_cParameter, value: i32) -> Result<()> {
        // SAFETY: the context is valid; the library checks the value.
        let code = unsafe { zstd_sys::ZSTD_CCtx_setParameter(self.0.as_ptr(), parameter, value) };
        check(code).map_err(|code| failure(code, Error::invalid_input))?;
        Ok(())
    }

    /// Replaces `out` by one frame.
    pub(super) fn compress(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        reserve_total(out, zstd_safe::compress_bound(data.len()))?;
        let room = out.spare_capacity_mut();
        // SAFETY: both ranges are valid for as many bytes as the library is told, and do not overlap.
        let code = unsafe {
            zstd_sys::ZSTD_compress2(
                self.0.as_ptr(),
                room.as_mut_ptr().cast(),
                room.len(),
                data.as_ptr().cast(),
                data.len(),
            )
        };
        let len = check(code).map_err(|code| failure(code, Error::limit))?;
        // SAFETY: the library has written that many bytes from the start of the room.
        unsafe { out.set_len(len) };
        Ok(())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is valid and not used again.
        unsafe { zstd_sys::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

fn check(code: usize) -> std::result::Result<usize, usize> {
    // SAFETY: a function from integers to integers.
    match unsafe { zstd_sys::ZSTD_isError(code) } {
        0 => Ok(code),
        _ => Err(code),
    }
}
