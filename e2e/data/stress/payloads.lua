-- Phase `payloads`: every request is a POST of LEAST to MOST bytes, one in CHAOS_ONE_IN of them with a header of CHAOS_BYTES.
-- Seed and thread number decide everything, so that a run can be repeated.

local LEAST, MOST = 1000000, 9400000
local CHAOS_BYTES, CHAOS_ONE_IN = 40000, 5
local LINE = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"

local text, chaos, before

function init(args)
  math.randomseed(tonumber(args[1]) * 1000 + thread_number)
  text = LINE:rep(math.ceil(MOST / #LINE))
  chaos = "X-Chaos-Header: " .. ("c"):rep(CHAOS_BYTES) .. "\r\n"
  before = "POST / HTTP/1.1\r\nHost: " .. wrk.headers["Host"] .. "\r\nContent-Type: application/octet-stream\r\n"
end

function request()
  local length = math.random(LEAST, MOST)
  local marked = math.random(CHAOS_ONE_IN) == 1
  requests_built = requests_built + 1
  requests_marked = requests_marked + (marked and 1 or 0)
  bytes_built = bytes_built + length
  local fields = (marked and chaos or "") .. "Content-Length: " .. length .. "\r\n\r\n"
  return before .. fields .. text:sub(1, length)
end
