import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder, unusableHome } from '../core/make-folder.js';

/** A grant as it outlives a restart: refresh tokens by their hashes only. */
export interface KeptGrant {
  readonly id: string;
  readonly companyId: string;
  revoked: boolean;
  readonly refreshTokens: readonly { readonly hash: string; readonly spent: boolean }[];
}

/** The file in which the sandbox remembers who granted access, as a real provider would. Written whole or not at all. */
export class GrantFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  read(): KeptGrant[] {
    try {
      return JSON.parse(readFileSync(this.#path, 'utf8')) as KeptGrant[];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw unusableHome(`${this.#path} cannot be read`, error);
    }
  }

  write(grants: readonly KeptGrant[]): void {
    makeFolder(dirname(this.#path));
    writeFileSync(`${this.#path}.new`, JSON.stringify(grants), { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
  }
}
