// A path tracer as C++ has it: shapes and materials are classes with virtual functions, and a path is a recursion.
// Every thread follows the paths of one pixel. The host compiles the same text for comparison.
// options: --fmad=false
#ifdef __CUDACC__
#define ON_DEVICE __device__
#else
#include <math.h>
#include <new>
#define ON_DEVICE
#endif

typedef unsigned int u32;

struct Vec {
  float x, y, z;
};

ON_DEVICE inline Vec vec(float x, float y, float z) { Vec v = {x, y, z}; return v; }
ON_DEVICE inline Vec operator+(Vec a, Vec b) { return vec(a.x + b.x, a.y + b.y, a.z + b.z); }
ON_DEVICE inline Vec operator-(Vec a, Vec b) { return vec(a.x - b.x, a.y - b.y, a.z - b.z); }
ON_DEVICE inline Vec operator*(Vec a, Vec b) { return vec(a.x * b.x, a.y * b.y, a.z * b.z); }
ON_DEVICE inline Vec operator*(float s, Vec a) { return vec(s * a.x, s * a.y, s * a.z); }
ON_DEVICE inline float dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
ON_DEVICE inline Vec unit(Vec a) { return (1.0f / sqrtf(dot(a, a))) * a; }
ON_DEVICE inline Vec reflect(Vec d, Vec n) { return d - (2.0f * dot(d, n)) * n; }

struct Random {
  u32 state;
  ON_DEVICE u32 word() {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  }
  // From 0 to 1, without 1.
  ON_DEVICE float number() { return (float)(word() >> 8) * (1.0f / 16777216.0f); }
  // In the ball of radius 1.
  ON_DEVICE Vec in_ball() {
    for (;;) {
      float x = 2.0f * number() - 1.0f, y = 2.0f * number() - 1.0f, z = 2.0f * number() - 1.0f;
      Vec v = vec(x, y, z);
      if (dot(v, v) < 1.0f) return v;
    }
  }
};

struct Ray {
  Vec from, to;
};

class Material;

struct Hit {
  float t;
  Vec point, normal;
  const Material* material;
};

class Material {
 public:
  // Whether light goes on; how much of it, and where.
  ON_DEVICE virtual bool scatter(const Ray& in, const Hit& hit, Random& random, Vec& part, Ray& out) const = 0;
  ON_DEVICE virtual Vec emitted() const { return vec(0.0f, 0.0f, 0.0f); }
};

class Shape {
 public:
  const Material* material;
  ON_DEVICE Shape(const Material* m) : material(m) {}
  // The first point of a ray between two distances.
  ON_DEVICE virtual bool hit(const Ray& ray, float least, float most, Hit& found) const = 0;
};

class Matt : public Material {
  Vec colour;

 public:
  ON_DEVICE Matt(Vec c) : colour(c) {}
  ON_DEVICE bool scatter(const Ray&, const Hit& hit, Random& random, Vec& part, Ray& out) const override {
    Vec to = hit.normal + random.in_ball();
    if (dot(to, to) < 1e-6f) to = hit.normal;
    out.from = hit.point;
    out.to = unit(to);
    part = colour;
    return true;
  }
};

class Metal : public Material {
  Vec colour;
  float blur;

 public:
  ON_DEVICE Metal(Vec c, float b) : colour(c), blur(b) {}
  ON_DEVICE bool scatter(const Ray& in, const Hit& hit, Random& random, Vec& part, Ray& out) const override {
    out.from = hit.point;
    out.to = unit(reflect(in.to, hit.normal) + blur * random.in_ball());
    part = colour;
    return dot(out.to, hit.normal) > 0.0f;
  }
};

class Glass : public Material {
  float index;

 public:
  ON_DEVICE Glass(float i) : index(i) {}
  ON_DEVICE bool scatter(const Ray& in, const Hit& hit, Random& random, Vec& part, Ray& out) const override {
    float cosine = dot(in.to, hit.normal), ratio = index;
    Vec n = hit.normal;
    if (cosine < 0.0f) {
      cosine = -cosine;
      ratio = 1.0f / index;
    } else {
      n = -1.0f * n;
    }
    out.from = hit.point;
    part = vec(1.0f, 1.0f, 1.0f);
    float left = 1.0f - ratio * ratio * (1.0f - cosine * cosine);
    float base = (1.0f - index) / (1.0f + index), c = 1.0f - cosine;
    float mirrored = base * base + (1.0f - base * base) * (c * c * c * c * c);
    if (left <= 0.0f || random.number() < mirrored)
      out.to = unit(reflect(in.to, n));
    else
      out.to = unit(ratio * (in.to + cosine * n) - sqrtf(left) * n);
    return true;
  }
};

class Lamp : public Material {
  Vec light;

 public:
  ON_DEVICE Lamp(Vec l) : light(l) {}
  ON_DEVICE bool scatter(const Ray&, const Hit&, Random&, Vec&, Ray&) const override { return false; }
  ON_DEVICE Vec emitted() const override { return light; }
};

class Sphere : public Shape {
  Vec centre;
  float radius;

 public:
  ON_DEVICE Sphere(Vec c, float r, const Material* m) : Shape(m), centre(c), radius(r) {}
  ON_DEVICE bool hit(const Ray& ray, float least, float most, Hit& found) const override {
    Vec d = ray.from - centre;
    float b = dot(d, ray.to), under = b * b - (dot(d, d) - radius * radius);
    if (under < 0.0f) return false;
    float root = sqrtf(under), t = -b - root;
    if (t <= least || t >= most) {
      t = root - b;
      if (t <= least || t >= most) return false;
    }
    found.t = t;
    found.point = ray.from + t * ray.to;
    found.normal = (1.0f / radius) * (found.point - centre);
    found.material = material;
    return true;
  }
};

class Plane : public Shape {
  Vec normal;
  float height;

 public:
  ON_DEVICE Plane(Vec n, float h, const Material* m) : Shape(m), normal(n), height(h) {}
  ON_DEVICE bool hit(const Ray& ray, float least, float most, Hit& found) const override {
    float slope = dot(ray.to, normal);
    if (slope < 1e-6f && slope > -1e-6f) return false;
    float t = (height - dot(ray.from, normal)) / slope;
    if (t <= least || t >= most) return false;
    found.t = t;
    found.point = ray.from + t * ray.to;
    found.normal = slope < 0.0f ? normal : -1.0f * normal;
    found.material = material;
    return true;
  }
};

class Box : public Shape {
  Vec low, high;

  // Narrows the part of the ray that is between two sides. Says at which axis.
  ON_DEVICE static void sides(float from, float to, float low, float high, int axis, float& in, float& out, int& at,
                              int& at_out) {
    float scale = 1.0f / to, t0 = (low - from) * scale, t1 = (high - from) * scale;
    if (scale < 0.0f) {
      float t = t0;
      t0 = t1;
      t1 = t;
    }
    if (t0 > in) in = t0, at = axis;
    if (t1 < out) out = t1, at_out = axis;
  }

 public:
  ON_DEVICE Box(Vec l, Vec h, const Material* m) : Shape(m), low(l), high(h) {}
  ON_DEVICE bool hit(const Ray& ray, float least, float most, Hit& found) const override {
    float in = least, out = most;
    int axis = -1, axis_out = -1;
    sides(ray.from.x, ray.to.x, low.x, high.x, 0, in, out, axis, axis_out);
    sides(ray.from.y, ray.to.y, low.y, high.y, 1, in, out, axis, axis_out);
    sides(ray.from.z, ray.to.z, low.z, high.z, 2, in, out, axis, axis_out);
    if (in >= out) return false;
    // From inside, the way out counts.
    float t = in;
    if (axis < 0) {
      if (axis_out < 0) return false;
      t = out;
      axis = axis_out;
    }
    float along = axis == 0 ? ray.to.x : axis == 1 ? ray.to.y : ray.to.z, sign = along < 0.0f ? 1.0f : -1.0f;
    found.t = t;
    found.point = ray.from + t * ray.to;
    found.normal = vec(axis == 0 ? sign : 0.0f, axis == 1 ? sign : 0.0f, axis == 2 ? sign : 0.0f);
    found.material = material;
    return true;
  }
};

struct World {
  int n_shapes;
  const Shape* shapes[12];
  // Shapes and materials, each in a place of its own.
  alignas(16) char places[20][64];
};

ON_DEVICE void furnish(World* world) {
  int used = 0, n = 0;
  const Material* grey = new (world->places[used++]) Matt(vec(0.5f, 0.5f, 0.55f));
  const Material* red = new (world->places[used++]) Matt(vec(0.8f, 0.3f, 0.2f));
  const Material* green = new (world->places[used++]) Matt(vec(0.3f, 0.7f, 0.3f));
  const Material* steel = new (world->places[used++]) Metal(vec(0.8f, 0.8f, 0.9f), 0.05f);
  const Material* brass = new (world->places[used++]) Metal(vec(0.9f, 0.7f, 0.3f), 0.3f);
  const Material* glass = new (world->places[used++]) Glass(1.5f);
  const Material* lamp = new (world->places[used++]) Lamp(vec(3.0f, 2.8f, 2.5f));
  const Material* blue = new (world->places[used++]) Matt(vec(0.2f, 0.3f, 0.8f));
  world->shapes[n++] = new (world->places[used++]) Plane(vec(0.0f, 1.0f, 0.0f), -1.0f, grey);
  world->shapes[n++] = new (world->places[used++]) Plane(vec(0.0f, 0.0f, 1.0f), -6.0f, green);
  world->shapes[n++] = new (world->places[used++]) Sphere(vec(0.0f, 0.0f, -3.0f), 1.0f, glass);
  world->shapes[n++] = new (world->places[used++]) Sphere(vec(-2.0f, 0.0f, -3.5f), 1.0f, steel);
  world->shapes[n++] = new (world->places[used++]) Sphere(vec(2.0f, -0.25f, -3.0f), 0.75f, brass);
  world->shapes[n++] = new (world->places[used++]) Sphere(vec(0.5f, -0.7f, -1.8f), 0.3f, red);
  world->shapes[n++] = new (world->places[used++]) Sphere(vec(0.0f, 4.0f, -3.0f), 1.2f, lamp);
  world->shapes[n++] = new (world->places[used++]) Sphere(vec(-0.7f, -0.75f, -1.9f), 0.25f, glass);
  world->shapes[n++] = new (world->places[used++]) Box(vec(-3.6f, -1.0f, -3.0f), vec(-3.0f, 0.6f, -2.2f), blue);
  world->shapes[n++] = new (world->places[used++]) Box(vec(1.0f, -1.0f, -5.0f), vec(1.9f, 1.2f, -4.2f), steel);
  world->shapes[n++] = new (world->places[used++]) Box(vec(-1.4f, -1.0f, -2.2f), vec(-1.1f, -0.6f, -1.9f), red);
  world->shapes[n++] = new (world->places[used++]) Box(vec(2.4f, -1.0f, -2.3f), vec(2.8f, -0.4f, -1.9f), glass);
  world->n_shapes = n;
}

ON_DEVICE bool nearest(const World* world, const Ray& ray, Hit& found) {
  float most = 1e9f;
  bool any = false;
  for (int i = 0; i < world->n_shapes; i++)
    if (world->shapes[i]->hit(ray, 1e-3f, most, found)) most = found.t, any = true;
  return any;
}

// The light that comes along a ray, after so many turns at most.
ON_DEVICE Vec light(const World* world, const Ray& ray, Random& random, int turns) {
  Hit hit;
  if (!nearest(world, ray, hit)) {
    float up = 0.5f * (ray.to.y + 1.0f);
    return (1.0f - up) * vec(1.0f, 1.0f, 1.0f) + up * vec(0.5f, 0.7f, 1.0f);
  }
  Vec own = hit.material->emitted(), part;
  Ray out;
  if (turns == 0 || !hit.material->scatter(ray, hit, random, part, out)) return own;
  return own + part * light(world, out, random, turns - 1);
}

ON_DEVICE Vec pixel(const World* world, int x, int y, int width, int height, int samples, int turns) {
  Random random = {(u32)(y * width + x) * 2654435761u + 88675123u};
  Vec sum = vec(0.0f, 0.0f, 0.0f);
  for (int i = 0; i < samples; i++) {
    float u = ((float)x + random.number()) / (float)width, v = ((float)y + random.number()) / (float)height;
    Ray ray;
    ray.from = vec(0.0f, 0.6f, 2.0f);
    ray.to = unit(vec(4.0f * u - 2.0f, 1.3f - 3.0f * v, -3.0f));
    sum = sum + light(world, ray, random, turns);
  }
  return (1.0f / (float)samples) * sum;
}

#ifdef __CUDACC__
extern "C" __global__ void furnish_world(World* world) { furnish(world); }

extern "C" __global__ void render(const World* world, float* out, int width, int height, int samples, int turns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  Vec colour = pixel(world, x, y, width, height, samples, turns);
  float* to = out + 3 * (y * width + x);
  to[0] = colour.x;
  to[1] = colour.y;
  to[2] = colour.z;
}
#endif
