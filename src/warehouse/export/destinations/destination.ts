import type { Proxies } from '../../../http/proxy/proxies.js';

/** Where an export goes. The bytes appear under their final name as a whole, or not at all. */
export interface Destination {
  /** The file's name in its folder; undefined where it has no name. */
  readonly name: string | undefined;
  /** Resolves once the caller may use the bytes for something else. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the bytes appear, with their manifest. The manifest is there first, so that a reader who finds the file finds its checksum, too. */
  finish(manifest: ManifestTexts): Promise<void>;
  /** Removes everything that was written. May be called at any time, and again. */
  abort(): Promise<void>;
}

/** A kind of destination; registry.ts lists them. */
export interface DestinationKind {
  /** Begins the addresses of this kind; undefined: any other address is one of this kind. */
  readonly scheme?: string;
  /** How users write the address of a file and that of a folder. */
  readonly fileAddress: string;
  readonly folderAddress: string;
  /** A sentence about this kind for the help of `muster export`. */
  readonly help?: string;
  /** A folder as it is kept, without a slash at its end; undefined where the text is no address of a folder. */
  folderFrom(text: string): string | undefined;
  /** Throws `export_failed` and `invalid_configuration`. */
  open(address: string, options: DestinationOptions): Promise<Destination>;
}

export interface DestinationOptions {
  /** Permissions of a file; unset, only its owner may read it. */
  readonly mode?: number | undefined;
  /** Whether to make the folder of a file where it is missing. */
  readonly makesFolder?: boolean | undefined;
  /** Proxies on the way to a server; unset: none. */
  readonly proxies?: Proxies | undefined;
}

/** A manifest, and the same signed as a compact JWS, where there is a key. */
export interface ManifestTexts {
  readonly text: string;
  readonly signed: string | undefined;
}

/** The suffixes that make the names of the manifest and of the signed manifest from the name of an export. */
export const MANIFEST_SUFFIX = '.manifest.json';
export const SIGNED_MANIFEST_SUFFIX = '.manifest.jws';
