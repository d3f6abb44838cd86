//! Caches of memory sites.

use handloom_plan::abi::SiteCache;

#[test]
fn caches_end_where_no_aligned_access_fits() {
    let limit = |size, length, align| SiteCache::new(64, size, length, align).limit;
    assert_eq!([limit(8, 4, 4), limit(9, 4, 4), limit(11, 4, 4), limit(12, 4, 4)], [8, 8, 8, 12]);
    assert_eq!([limit(1, 1, 1), limit(16, 16, 16), limit(129, 128, 4)], [1, 16, 4]);
    assert_eq!([limit(3, 4, 4), limit(0, 1, 1)], [0, 0]);
}
