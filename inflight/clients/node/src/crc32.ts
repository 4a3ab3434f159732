// CRC-32 (IEEE), as in zlib; node:zlib has it only from Node.js 22 on.

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1
  return byte
})

export function crc32(ascii: string): number {
  let crc = 0xffffffff
  for (let i = 0; i < ascii.length; i++) crc = (crc >>> 8) ^ table[(crc ^ ascii.charCodeAt(i)) & 0xff]!
  return ~crc >>> 0
}
