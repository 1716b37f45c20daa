/** Where an export goes. What is written appears under its final name as a whole, or not at all. */
export interface Destination {
  /** Resolves once the bytes may be used for something else. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes what was written appear, with its manifest. The manifest is there first: whoever finds the one, finds what to hold it against. */
  finish(manifest: string): Promise<void>;
  /** Leaves nothing behind. May be called at any time, and again. */
  abort(): Promise<void>;
}

/** What stands behind the name of an export in the name of its manifest. */
export const MANIFEST_SUFFIX = '.manifest.json';
