local function parse(s) local n = 0 for w in s:gmatch("%a+") do n = n + #w end return n end
local function sort(n) local t = {} for i = 1, n do t[i] = (i * 7919) % 10007 end table.sort(t) return t[1] end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function round(text) parse(text) sort(60000) fib(29) end
local function main() local text = ("word and "):rep(40000) for i = 1, 6 do round(text) end end
main()
