-- slurm_score_json: the JSON and UTF-8 that slurm_score needs, in Lua 5.1 to 5.4, with no other module.

local M = {}

M.NULL = {} -- what `null` is decoded to: nil can't stand in a table

local MAX_DEPTH = 16 -- of the nesting in a decoded text

-- UTF-8 -----------------------------------------------------------------------------------------------------

-- First byte -> pattern of a well-formed sequence from there (Unicode 15.0, table 3-7).
local UTF8_FORMS = {}
for _, form in ipairs({
  { 0xC2, 0xDF, "^.[\128-\191]" },
  { 0xE0, 0xE0, "^.[\160-\191][\128-\191]" },
  { 0xE1, 0xEF, "^.[\128-\191][\128-\191]" },
  { 0xED, 0xED, "^.[\128-\159][\128-\191]" }, -- no surrogates
  { 0xF0, 0xF0, "^.[\144-\191][\128-\191][\128-\191]" },
  { 0xF1, 0xF3, "^.[\128-\191][\128-\191][\128-\191]" },
  { 0xF4, 0xF4, "^.[\128-\143][\128-\191][\128-\191]" },
}) do
  for byte = form[1], form[2] do
    UTF8_FORMS[byte] = form[3]
  end
end

local function clean_run(run)
  local parts, at = {}, 1
  while at <= #run do
    local form = UTF8_FORMS[run:byte(at)]
    local part = form and run:match(form, at) or "?"
    parts[#parts + 1] = part
    at = at + #part
  end
  return table.concat(parts)
end

-- The text with every byte that is not UTF-8 replaced by "?".
function M.clean_utf8(text)
  return (text:gsub("[\128-\255]+", clean_run))
end

-- At most `limit` bytes of the text, never half a character.
function M.cut(text, limit)
  if #text <= limit then
    return text
  end
  local last = limit
  for _ = 1, 3 do -- a character has three continuation bytes at most
    local following = text:byte(last + 1)
    if following < 0x80 or following > 0xBF then
      break
    end
    last = last - 1
  end
  return text:sub(1, last)
end

-- Out -------------------------------------------------------------------------------------------------------

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\127"] = "\\u007f" }
for byte = 0, 31 do
  ESCAPES[string.char(byte)] = string.format("\\u%04x", byte)
end

-- The text as a JSON string, valid for any bytes. (%z: a pattern of Lua 5.1 can't hold a NUL.)
function M.quote(text)
  if not text:find('[%c"\\\128-\255]') then -- nearly always
    return '"' .. text .. '"'
  end
  return '"' .. M.clean_utf8(text):gsub('[%z\1-\31\127"\\]', ESCAPES) .. '"'
end

-- In: strict, raises on anything that RFC 8259 doesn't allow ---------------------------------------------------

local LITERALS = { ["true"] = true, ["false"] = false, ["null"] = M.NULL }
local ESCAPED = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }
local decode_value -- (text, at, depth) -> the value that begins at `at`, the position after it

local function fail(at)
  error("not JSON at byte " .. tostring(at), 0)
end

local function skip_space(text, at)
  return text:find("[^ \t\r\n]", at) or #text + 1
end

local function utf8_char(code)
  if code < 0x80 then
    return string.char(code)
  end
  local tail, limit = "", 0x40 -- the first byte holds 5, 4 or 3 bits
  repeat
    tail = string.char(0x80 + code % 0x40) .. tail
    code, limit = math.floor(code / 0x40), limit / 2
  until code < limit
  return string.char(0x100 - 2 * limit + code) .. tail
end

-- The character of the escape whose letter is at `at`, and the position after it.
local function decode_escape(text, at)
  local letter = text:sub(at, at)
  if letter ~= "u" then
    return ESCAPED[letter] or fail(at), at + 1
  end
  local code = tonumber(text:match("^%x%x%x%x", at + 1) or fail(at), 16)
  if code < 0xD800 or code > 0xDFFF then
    return utf8_char(code), at + 5
  end
  local low = text:match("^\\u([dD][c-fC-F]%x%x)", at + 5)
  if code > 0xDBFF or not low then
    return "?", at + 5 -- half of a surrogate pair
  end
  return utf8_char(0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00), at + 11
end

local function decode_string(text, at)
  local whole, after = text:match('^([^%z\1-\31"\\]*)"()', at)
  if whole then -- nothing is escaped in it
    return whole, after
  end
  local parts = {}
  while true do
    local stop = text:find('[%z\1-\31"\\]', at) or fail(at)
    parts[#parts + 1] = text:sub(at, stop - 1)
    local sign = text:sub(stop, stop)
    if sign == '"' then
      return table.concat(parts), stop + 1
    elseif sign ~= "\\" then
      fail(stop)
    end
    parts[#parts + 1], at = decode_escape(text, stop + 1)
  end
end

local function decode_number(text, at)
  local last = select(2, text:find("^-?[1-9]%d*", at)) or select(2, text:find("^-?0", at)) or fail(at)
  last = select(2, text:find("^%.%d+", last + 1)) or last
  last = select(2, text:find("^[eE][-+]?%d+", last + 1)) or last
  return tonumber(text:sub(at, last)) or fail(at), last + 1
end

-- The members of an array or object from after its bracket; `put(members, at)` reads one of them.
local function decode_members(text, at, closing, put)
  local members = {}
  at = skip_space(text, at)
  if text:sub(at, at) == closing then
    return members, at + 1
  end
  while true do
    at = skip_space(text, put(members, at))
    local sign = text:sub(at, at)
    if sign == closing then
      return members, at + 1
    elseif sign ~= "," then
      fail(at)
    end
    at = skip_space(text, at + 1)
  end
end

local function decode_array(text, at, depth)
  return decode_members(text, at, "]", function(members, from)
    members[#members + 1], from = decode_value(text, from, depth)
    return from
  end)
end

local function decode_object(text, at, depth)
  return decode_members(text, at, "}", function(members, from)
    if text:sub(from, from) ~= '"' then
      fail(from)
    end
    local key, colon = decode_string(text, from + 1)
    colon = skip_space(text, colon)
    if text:sub(colon, colon) ~= ":" then
      fail(colon)
    end
    members[key], from = decode_value(text, skip_space(text, colon + 1), depth)
    return from
  end)
end

function decode_value(text, at, depth)
  local sign = text:sub(at, at)
  if depth > MAX_DEPTH then
    fail(at)
  elseif sign == "{" then
    return decode_object(text, at + 1, depth + 1)
  elseif sign == "[" then
    return decode_array(text, at + 1, depth + 1)
  elseif sign == '"' then
    return decode_string(text, at + 1)
  end
  local word = text:match("^%l+", at)
  if not word then
    return decode_number(text, at)
  elseif LITERALS[word] == nil then
    fail(at)
  end
  return LITERALS[word], at + #word
end

-- The object that the text holds: a table of strings, numbers, booleans, M.NULL and tables.
function M.decode_object(text)
  local start = skip_space(text, 1)
  if text:sub(start, start) ~= "{" then
    fail(start)
  end
  local object, at = decode_value(text, start, 1)
  at = skip_space(text, at)
  return at > #text and object or fail(at)
end

return M
