-- Phase `headers`: every request has another `X-Large-Header` of LEAST to MOST bytes, cut out of a pool that the thread fills once.
-- Seed and thread number decide everything, so that a run can be repeated.

local LEAST, MOST = 10000, 60000
local POOL = 1024 * 1024
local LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

local pool, before, after

function init(args)
  math.randomseed(tonumber(args[1]) * 1000 + thread_number)
  local letters = {}
  for at = 1, POOL do
    local letter = math.random(#LETTERS)
    letters[at] = LETTERS:sub(letter, letter)
  end
  pool = table.concat(letters)
  before = "GET / HTTP/1.1\r\nHost: " .. wrk.headers["Host"] .. "\r\nX-Large-Header: "
  after = "\r\n\r\n"
end

function request()
  local length = math.random(LEAST, MOST)
  local start = math.random(1, POOL - length)
  requests_built = requests_built + 1
  bytes_built = bytes_built + length
  return before .. pool:sub(start, start + length - 1) .. after
end
