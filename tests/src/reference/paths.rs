//! The path tracer of `kernels/raytracer.cu` in Rust, with enumerations in place of virtual functions and a loop in place of its recursion.
//!
//! The kernel is compiled without contraction, and each of its operations is rounded as the host rounds it: results compare by bits.

use std::ops::{Add, Mul, Sub};

/// Three floats.
#[derive(Clone, Copy, PartialEq, Debug)]
struct V(f32, f32, f32);

impl Add for V {
    type Output = V;
    fn add(self, o: V) -> V {
        V(self.0 + o.0, self.1 + o.1, self.2 + o.2)
    }
}

impl Sub for V {
    type Output = V;
    fn sub(self, o: V) -> V {
        V(self.0 - o.0, self.1 - o.1, self.2 - o.2)
    }
}

impl Mul for V {
    type Output = V;
    fn mul(self, o: V) -> V {
        V(self.0 * o.0, self.1 * o.1, self.2 * o.2)
    }
}

impl Mul<V> for f32 {
    type Output = V;
    fn mul(self, v: V) -> V {
        V(self * v.0, self * v.1, self * v.2)
    }
}

fn dot(a: V, b: V) -> f32 {
    a.0 * b.0 + a.1 * b.1 + a.2 * b.2
}

fn unit(v: V) -> V {
    (1.0 / dot(v, v).sqrt()) * v
}

fn reflect(d: V, n: V) -> V {
    d - (2.0 * dot(d, n)) * n
}

struct Random(u32);

impl Random {
    fn number(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        // 24 bits: the conversion is exact.
        (self.0 >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    fn in_ball(&mut self) -> V {
        loop {
            let mut side = || 2.0 * self.number() - 1.0;
            let v = V(side(), side(), side());
            if dot(v, v) < 1.0 {
                return v;
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Ray {
    from: V,
    to: V,
}

#[derive(Clone, Copy)]
enum Material {
    Matt(V),
    Metal(V, f32),
    Glass(f32),
    Lamp(V),
}

#[derive(Clone, Copy)]
enum Shape {
    Plane(V, f32),
    Sphere(V, f32),
    Box(V, V),
}

struct Hit {
    t: f32,
    point: V,
    normal: V,
    material: Material,
}

impl Material {
    fn emitted(self) -> V {
        if let Material::Lamp(light) = self { light } else { V(0.0, 0.0, 0.0) }
    }

    /// The part of the light that goes on, and where.
    fn scatter(self, ray: Ray, hit: &Hit, random: &mut Random) -> Option<(V, Ray)> {
        let on = |to| Ray { from: hit.point, to };
        match self {
            Material::Lamp(_) => None,
            Material::Matt(colour) => {
                let to = hit.normal + random.in_ball();
                let to = if dot(to, to) < 1e-6 { hit.normal } else { to };
                Some((colour, on(unit(to))))
            }
            Material::Metal(colour, blur) => {
                let to = unit(reflect(ray.to, hit.normal) + blur * random.in_ball());
                (dot(to, hit.normal) > 0.0).then(|| (colour, on(to)))
            }
            Material::Glass(index) => {
                let cosine = dot(ray.to, hit.normal);
                let (cosine, ratio, n) =
                    if cosine < 0.0 { (-cosine, 1.0 / index, hit.normal) } else { (cosine, index, -1.0 * hit.normal) };
                let left = 1.0 - ratio * ratio * (1.0 - cosine * cosine);
                let (base, c) = ((1.0 - index) / (1.0 + index), 1.0 - cosine);
                let mirrored = base * base + (1.0 - base * base) * (c * c * c * c * c);
                let to = if left <= 0.0 || random.number() < mirrored {
                    reflect(ray.to, n)
                } else {
                    ratio * (ray.to + cosine * n) - left.sqrt() * n
                };
                Some((V(1.0, 1.0, 1.0), on(unit(to))))
            }
        }
    }
}

impl Shape {
    /// Distance and normal of the first point of a ray between two distances.
    fn hit(self, ray: Ray, least: f32, most: f32) -> Option<(f32, V)> {
        let is_inside = |t: f32| t > least && t < most;
        let at = |t: f32| ray.from + t * ray.to;
        match self {
            Shape::Plane(normal, height) => {
                let slope = dot(ray.to, normal);
                if slope < 1e-6 && slope > -1e-6 {
                    return None;
                }
                let t = (height - dot(ray.from, normal)) / slope;
                is_inside(t).then(|| (t, if slope < 0.0 { normal } else { -1.0 * normal }))
            }
            Shape::Sphere(centre, radius) => {
                let d = ray.from - centre;
                let b = dot(d, ray.to);
                let under = b * b - (dot(d, d) - radius * radius);
                if under < 0.0 {
                    return None;
                }
                let root = under.sqrt();
                let t = [-b - root, root - b].into_iter().find(|t| is_inside(*t))?;
                Some((t, (1.0 / radius) * (at(t) - centre)))
            }
            Shape::Box(low, high) => {
                let (mut enter, mut leave) = ((least, None), (most, None));
                let sides = [
                    (ray.from.0, ray.to.0, low.0, high.0),
                    (ray.from.1, ray.to.1, low.1, high.1),
                    (ray.from.2, ray.to.2, low.2, high.2),
                ];
                for (axis, (from, to, low, high)) in sides.into_iter().enumerate() {
                    let scale = 1.0 / to;
                    let (t0, t1) = ((low - from) * scale, (high - from) * scale);
                    let (t0, t1) = if scale < 0.0 { (t1, t0) } else { (t0, t1) };
                    if t0 > enter.0 {
                        enter = (t0, Some(axis));
                    }
                    if t1 < leave.0 {
                        leave = (t1, Some(axis));
                    }
                }
                if enter.0 >= leave.0 {
                    return None;
                }
                let (t, axis) = match (enter, leave) {
                    ((t, Some(axis)), _) | (_, (t, Some(axis))) => (t, axis),
                    _ => return None,
                };
                let sign = if sides[axis].1 < 0.0 { 1.0 } else { -1.0 };
                let part = |a| if a == axis { sign } else { 0.0 };
                Some((t, V(part(0), part(1), part(2))))
            }
        }
    }
}

fn world() -> Vec<(Shape, Material)> {
    let grey = Material::Matt(V(0.5, 0.5, 0.55));
    let red = Material::Matt(V(0.8, 0.3, 0.2));
    let green = Material::Matt(V(0.3, 0.7, 0.3));
    let blue = Material::Matt(V(0.2, 0.3, 0.8));
    let steel = Material::Metal(V(0.8, 0.8, 0.9), 0.05);
    let brass = Material::Metal(V(0.9, 0.7, 0.3), 0.3);
    let glass = Material::Glass(1.5);
    let lamp = Material::Lamp(V(3.0, 2.8, 2.5));
    vec![
        (Shape::Plane(V(0.0, 1.0, 0.0), -1.0), grey),
        (Shape::Plane(V(0.0, 0.0, 1.0), -6.0), green),
        (Shape::Sphere(V(0.0, 0.0, -3.0), 1.0), glass),
        (Shape::Sphere(V(-2.0, 0.0, -3.5), 1.0), steel),
        (Shape::Sphere(V(2.0, -0.25, -3.0), 0.75), brass),
        (Shape::Sphere(V(0.5, -0.7, -1.8), 0.3), red),
        (Shape::Sphere(V(0.0, 4.0, -3.0), 1.2), lamp),
        (Shape::Sphere(V(-0.7, -0.75, -1.9), 0.25), glass),
        (Shape::Box(V(-3.6, -1.0, -3.0), V(-3.0, 0.6, -2.2)), blue),
        (Shape::Box(V(1.0, -1.0, -5.0), V(1.9, 1.2, -4.2)), steel),
        (Shape::Box(V(-1.4, -1.0, -2.2), V(-1.1, -0.6, -1.9)), red),
        (Shape::Box(V(2.4, -1.0, -2.3), V(2.8, -0.4, -1.9)), glass),
    ]
}

fn nearest(world: &[(Shape, Material)], ray: Ray) -> Option<Hit> {
    let mut found: Option<Hit> = None;
    for (shape, material) in world {
        let most = found.as_ref().map_or(1e9, |h| h.t);
        if let Some((t, normal)) = shape.hit(ray, 1e-3, most) {
            found = Some(Hit { t, point: ray.from + t * ray.to, normal, material: *material });
        }
    }
    found
}

/// The light along a ray. The kernel adds up from the end of the path, so the path is followed first.
fn light(world: &[(Shape, Material)], mut ray: Ray, random: &mut Random, turns: u32) -> V {
    let mut path = Vec::new();
    let mut light = loop {
        let Some(hit) = nearest(world, ray) else {
            let up = 0.5 * (ray.to.1 + 1.0);
            break (1.0 - up) * V(1.0, 1.0, 1.0) + up * V(0.5, 0.7, 1.0);
        };
        let own = hit.material.emitted();
        if path.len() as u32 == turns {
            break own;
        }
        let Some((part, next)) = hit.material.scatter(ray, &hit, random) else { break own };
        path.push((own, part));
        ray = next;
    };
    for (own, part) in path.into_iter().rev() {
        light = own + part * light;
    }
    light
}

/// The picture: three floats for each pixel, in rows.
pub fn picture(width: u32, height: u32, samples: u32, turns: u32) -> Vec<f32> {
    let world = world();
    let mut out = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let mut random = Random((y * width + x).wrapping_mul(2_654_435_761).wrapping_add(88_675_123));
        let mut sum = V(0.0, 0.0, 0.0);
        for _ in 0..samples {
            let u = (x as f32 + random.number()) / width as f32;
            let v = (y as f32 + random.number()) / height as f32;
            let ray = Ray { from: V(0.0, 0.6, 2.0), to: unit(V(4.0 * u - 2.0, 1.3 - 3.0 * v, -3.0)) };
            sum = sum + light(&world, ray, &mut random, turns);
        }
        let V(r, g, b) = (1.0 / samples as f32) * sum;
        out.extend([r, g, b]);
    }
    out
}
