import * as zlib from 'node:zlib';

/** Compresses a page of a file. The result is valid until the next call. */
export type Compress = (bytes: Uint8Array) => Uint8Array;

/** The level that zstd's authors chose. Higher ones take much more time, and save little on pages that are encoded already. */
const LEVEL = 3;

/** Node has zstd from 22.15 on, at the same level. Before that, the same library is compiled to WebAssembly. */
export async function zstd(): Promise<Compress> {
  const { zstdCompressSync } = zlib as { readonly zstdCompressSync?: Compress };
  if (zstdCompressSync !== undefined) return (bytes) => zstdCompressSync(bytes);
  const { Zstd } = await import('@hpcc-js/wasm-zstd');
  const compressor = await Zstd.load();
  return (bytes) => compressor.compress(bytes, LEVEL);
}
