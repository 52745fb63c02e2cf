//! The fuzz targets without a fuzzer: every seed, and mutations of the seeds that are the same in every run.

mod mutations;
mod seeds;
