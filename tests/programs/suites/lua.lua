-- What the interpreter, its strings, tables, numbers and coroutines compute.
local function show(...) print(select('#', ...), ...) end

-- Closures, recursion, integers of 64 bits, and numbers that are none.
local function ack(m, n)
  if m == 0 then return n + 1 end
  return ack(m - 1, n == 0 and 1 or ack(m, n - 1))
end
show(ack(2, 9), 1 << 62, math.maxinteger + 1, 7 // -2, 7 % -2, 7.5 // -2, 0x7fp-3, 1e308 * 10)
show(math.tointeger(3.0), 3 | 4.0, pcall(function() return 1 | 1.5 end))
show(string.format("%q %5.2f %x %a %s %-8s|", "a\n\0b", math.pi, 255, 1 / 3, nil, "left"))

-- Sorting and tables that grow, shrink and have holes.
local seed = 42
local function random() seed = (seed * 1103515245 + 12345) % 2147483648 return seed end
local list = {}
for i = 1, 20000 do list[i] = random() end
table.sort(list)
for i = 2, #list do assert(list[i - 1] <= list[i]) end
show(list[1], list[10000], list[20000])
local words = {}
for i = 1, 5000 do words["k" .. random() % 1000] = i end
for i = 1, 1000, 3 do words["k" .. i] = nil end
local n, sum = 0, 0
for _, v in pairs(words) do n, sum = n + 1, sum + v end
show(n, sum, table.concat({1, 2.5, "x"}, "-"), table.unpack({1, nil, 3}, 1, 3))

-- Patterns, packing, and strings of all lengths.
local text = ("the quick brown fox; "):rep(500)
show(#text, text:gsub("%w+", string.upper):sub(1, 30), select(2, text:gsub("o%f[%A]", "")))
for k, v in ("a=1, bc=22, d=x3"):gmatch("(%w+)=(%w+)") do io.write(k, ":", v, " ") end
print(string.pack(">I3s2z", 70000, "ab", "c"):byte(1, -1))
show(utf8.char(228, 8364, 128512), utf8.len("äöü"), ("x"):rep(3, ","), ("abc"):reverse())

-- Metatables, errors with traces, and values to be closed.
local V = {}
V.__index = V
V.__add = function(a, b) return setmetatable({a[1] + b[1]}, V) end
V.__eq = function(a, b) return a[1] == b[1] end
V.__call = function(self, x) return self[1] * x end
V.__close = function(self) io.write("closed ", self[1], "\n") end
do
  local a <close> = setmetatable({2}, V)
  local b = setmetatable({3}, V)
  show((a + b)[1], a == b, b(7))
end
show(pcall(error, {code = 5}))
show(xpcall(function() local x = nil; return x.y end, function(m) return "caught: " .. m end))
show(select(2, pcall(string.rep, "x", -1)), load("return 1 +"))

-- Coroutines that yield through protected calls, and what the collector leaves.
local function numbers(n)
  return coroutine.wrap(function() for i = 1, n do pcall(coroutine.yield, i * i) end end)
end
local total = 0
for square in numbers(2000) do total = total + square end
show(total)
local weak = setmetatable({}, {__mode = "k"})
for i = 1, 2000 do weak[{}] = ("garbage"):rep(i % 50) end
collectgarbage() collectgarbage()
show(next(weak), collectgarbage("count") < 20000)
for _, mode in ipairs {"generational", "incremental"} do
  collectgarbage(mode)
  local chain
  for i = 1, 50000 do chain = {i, next = i % 100 ~= 0 and chain or nil} end
  show(mode, chain[1])
end

-- Code that was dumped and loaded again.
local dumped = load(string.dump(ack, true), "ack", "b")
show(type(dumped), #string.dump(show) > 0)
show(os.time {year = 2026, month = 1, day = 1, hour = 12} > 0, os.getenv("NO_SUCH_NAME"))
