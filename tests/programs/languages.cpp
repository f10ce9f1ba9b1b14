// What C lacks: exceptions through several frames, virtual functions, streams, objects
// that are made before main and per thread.
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Shape {
    virtual ~Shape() { std::cout << "~Shape\n"; }
    virtual double area() const = 0;
};
struct Square : Shape {
    double side;
    explicit Square(double side) : side(side) {}
    ~Square() override { std::cout << "~Square " << side << '\n'; }
    double area() const override { return side * side; }
};
struct Circle : virtual Shape {
    double radius = 2;
    double area() const override { return 3 * radius * radius; }
};
struct Disc : Circle {
    double area() const override { return Circle::area() + 1; }
};

struct Named {
    std::string name;
    explicit Named(const char *name) : name(name) { std::cout << "made " << name << '\n'; }
    ~Named() { std::cout << "gone " << name << '\n'; }
};
static Named first("first"), second("second");
thread_local int number = 5;
thread_local std::string text("own");

struct Digit {
    int &log, digit;
    ~Digit() { log = log * 10 + digit; }
};

int deep(int n, int &log)
{
    Digit digit{log, n};
    if (n == 0)
        throw std::runtime_error("deep");
    return deep(n - 1, log) + 1;
}

// Many values live where control comes back.
__attribute__((noinline)) long mixed(long *p, int n)
{
    long a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5];
    double x = p[6] * 0.5;
    unsigned random = 12345;
    for (int i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        try {
            a += b ^ i;
            if ((random >> 8 & 3) == 0)
                throw i;
            b += c;
            try {
                c -= d + i;
                x *= 1.0001;
                if ((random >> 8 & 3) == 1)
                    throw std::runtime_error("r");
                d ^= e;
            } catch (std::exception &error) {
                e += error.what()[0] + a;
                if (random >> 12 & 1)
                    throw;
            }
            p[i & 7] += a;
        } catch (int k) {
            f += k * d;
            p[k & 7] ^= f;
        } catch (const std::runtime_error &) {
            f -= e;
            p[(i + 1) & 7] += long(x);
        }
    }
    return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + long(x * 100);
}

int dense(int x)
{
    switch (x) {
    case 0: return 5;
    case 1: throw 1;
    case 2: return 7;
    case 3: return 9;
    case 4: throw 'c';
    case 5: return 12;
    case 6: throw 2.5;
    case 7: return 3;
    }
    return 0;
}

Named &local()
{
    static Named local("local");
    return local;
}

int main()
{
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.emplace_back(new Square(3));
    shapes.emplace_back(new Disc);
    for (auto &shape : shapes)
        std::cout << shape->area() << '\n';
    try {
        dynamic_cast<Disc &>(*shapes[0]);
    } catch (std::bad_cast &) {
        std::cout << "bad cast\n";
    }
    int log = 0;
    try {
        deep(6, log);
    } catch (const std::exception &error) {
        std::cout << error.what() << log << '\n';
    }
    long values[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    std::cout << mixed(values, 2000) << '\n';
    for (long value : values)
        std::cout << value << ' ';
    for (int i = 0; i < 9; i++)
        try {
            std::cout << dense(i) << '\n';
        } catch (int n) {
            std::cout << "int " << n << '\n';
        } catch (char c) {
            std::cout << "char " << c << '\n';
        } catch (...) {
            std::cout << "other\n";
        }
    std::map<std::string, int> counts;
    for (auto word : {"x", "y", "zz", "x"})
        counts[word]++;
    for (auto &count : counts)
        std::cout << count.first << count.second << '\n';
    std::thread([] { text += "!"; std::cout << ++number << text << '\n'; }).join();
    std::cout << number << text << '\n';
    local();
    try {
        std::string("abc").at(10);
    } catch (std::out_of_range &) {
        std::cout << "out of range\n";
    }
    return 3;
}
