/** Makes archives, both sound ones and malicious ones. */

import * as zlib from 'node:zlib';
import { gzipSync } from 'node:zlib';
import { Header, type HeaderData } from 'tar';

export interface TarItem extends HeaderData {
  readonly path: string;
  readonly content?: string | Buffer;
  /** The letter of an entry type that no program knows. */
  readonly typeCode?: string;
}

/** Returns a `.tar.gz` with these entries, even if they are not valid. */
export function tarGz(items: readonly TarItem[], { level = 6 } = {}): Buffer {
  const blocks = items.flatMap(({ content = '', typeCode, ...item }) => {
    const body = Buffer.from(content);
    const header = new Header({ type: 'File', mode: 0o644, size: body.length, ...item });
    const block = Buffer.alloc(512);
    header.encode(block, 0);
    if (typeCode !== undefined) retype(block, typeCode);
    return [block, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]), { level });
}

/** Sets the type of a header and its checksum, which counts its own field as spaces. */
function retype(block: Buffer, typeCode: string): void {
  block.write(typeCode, 156);
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}

/** Returns a `.tar.gz` of files by name. */
export function tarOf(files: Readonly<Record<string, string | Buffer>>): Buffer {
  return tarGz(Object.entries(files).map(([path, content]) => ({ path, content })));
}

/** Returns `content` in gzip, whose first `bytes` bytes hold a very long file name and then one byte of the content. */
export function gzipFirstByteAlone(content: Buffer, bytes: number): Buffer {
  // The flags say that a name follows, which ends with a zero byte.
  const head = Buffer.from([0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3]);
  // This is a stored block, with its length and the complement of the length.
  const block = Buffer.from([0, 1, 0, 0xfe, 0xff, content[0] ?? 0]);
  const name = Buffer.from(`${'n'.repeat(bytes - head.length - block.length - 1)}\0`);
  const end = Buffer.alloc(8);
  end.writeUInt32LE(zlib.crc32(content), 0);
  end.writeUInt32LE(content.length, 4);
  return Buffer.concat([head, name, block, zlib.deflateRawSync(content.subarray(1)), end]);
}

export interface ZipItem {
  readonly name: string;
  readonly content?: string | Buffer;
  /** The Unix mode, which includes the type of the file. */
  readonly mode?: number;
  /** The unpacked length that the archive claims, if it is not the true one. */
  readonly claimedBytes?: number;
  readonly claimedCrc?: number;
}

/** Returns a `.zip` with these entries. */
export function zipOf(items: readonly ZipItem[]): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let offset = 0;
  for (const item of items) {
    const { local, central } = zipEntry(item, offset);
    locals.push(local);
    centrals.push(central);
    offset += local.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(items.length, 8);
  end.writeUInt16LE(items.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

function zipEntry({ name, content = '', mode = 0o100644, claimedBytes, claimedCrc }: ZipItem, offset: number) {
  const raw = Buffer.from(content);
  const packed = zlib.deflateRawSync(raw);
  const path = Buffer.from(name);
  // Both headers share these fields: version, flags (UTF-8), method, time, date, checksum, lengths.
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(0x800, 2);
  common.writeUInt16LE(8, 4);
  common.writeUInt32LE(claimedCrc ?? zlib.crc32(raw), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(claimedBytes ?? raw.length, 18);
  common.writeUInt16LE(path.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, path, packed]);
  const rest = Buffer.alloc(14);
  rest.writeUInt32LE(mode * 2 ** 16, 6);
  rest.writeUInt32LE(offset, 10);
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, rest, path]);
  return { local, central };
}
