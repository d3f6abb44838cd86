//! Sorting and option prices.

use handloom_tests::reference::data::{Within, doubles, n32, near, same, words};
use handloom_tests::reference::functions;
use handloom_tests::reference::run::{each_way, read, ways};

#[test]
fn bitonic() {
    each_way(&ways(), "bitonic", |k| {
        let v = words(81, 3 * 512);
        let (from, to) = (k.copy_of(&v), k.zeros::<u32>(v.len()));
        k.launch("bitonic_sort", [3, 1, 1], [256, 1, 1], &[(&from).into(), (&to).into()]);
        let mut want = v;
        want.chunks_mut(512).for_each(<[u32]>::sort_unstable);
        same(&k.what("bitonic_sort"), &read::<u32>(&to), &want);
    });
}

#[test]
fn black_scholes() {
    each_way(&ways(), "black_scholes", |k| {
        let n = 300;
        let (rate, volatility) = (0.02, 0.3);
        let [spot, strike, years] = [(91, 10.0, 30.0), (92, 5.0, 35.0), (93, 0.25, 5.25)]
            .map(|(from, low, high)| doubles(1000 * from, n, low, high));
        let (mut want, mut puts) = (Vec::new(), Vec::new());
        for i in 0..n {
            let (call, put) = functions::black_scholes(spot[i], strike[i], years[i], rate, volatility);
            want.push(call);
            puts.push(put);
        }
        want.extend(puts);
        let [ds, dk, dy] = [&spot, &strike, &years].map(|v| k.copy_of(v));
        let prices = k.zeros::<f64>(2 * n);
        let args =
            [n32(n).into(), rate.into(), volatility.into(), (&ds).into(), (&dk).into(), (&dy).into(), (&prices).into()];
        k.launch("black_scholes", [2, 1, 1], [256, 1, 1], &args);
        // A price is the difference of two products below 35, each a number that is right to about 1e-14 (the functions of the
        // reference, which are further off than those of the kernel) times one that is.
        near(&k.what("black_scholes"), &read::<f64>(&prices), &want, Within { absolute: 70.0 * 4e-14, relative: 0.0 });
    });
}
