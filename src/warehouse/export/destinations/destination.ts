/** Where an export goes. What is written appears under its final name as a whole, or not at all. */
export interface Destination {
  /** What the file is called in its folder; undefined where it has no name. */
  readonly name: string | undefined;
  /** Resolves once the bytes may be used for something else. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes what was written appear, with its manifest. The manifest is there first: whoever finds the one, finds what to hold it against. */
  finish(manifest: ManifestTexts): Promise<void>;
  /** Leaves nothing behind. May be called at any time, and again. */
  abort(): Promise<void>;
}

/** A manifest, and the same signed as a compact JWS, where there is a key. */
export interface ManifestTexts {
  readonly text: string;
  readonly signed: string | undefined;
}

/** What follows the name of an export in the names of its manifest and of the signed one. */
export const MANIFEST_SUFFIX = '.manifest.json';
export const SIGNED_MANIFEST_SUFFIX = '.manifest.jws';
