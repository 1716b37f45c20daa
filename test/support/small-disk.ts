import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BLOCK = Buffer.alloc(64 * 1024);

/** A file system of a few megabytes, in memory, that a test fills and empties. */
export class SmallDisk {
  readonly path: string;
  readonly #unmountAtExit = () => this.#unmount();

  private constructor(path: string) {
    this.path = path;
    process.once('exit', this.#unmountAtExit);
  }

  /** Undefined where this process may not mount one, as without root. */
  static mount(megabytes: number): SmallDisk | undefined {
    const path = mkdtempSync(join(tmpdir(), 'muster-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', path], { stdio: 'ignore' });
    } catch {
      rmdirSync(path);
      return undefined;
    }
    return new SmallDisk(path);
  }

  /** Writes until nothing more fits. */
  fill(): void {
    const file = openSync(this.#ballast, 'a');
    try {
      for (;;) writeSync(file, BLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  /** Takes back what `fill` has written. */
  makeRoom(): void {
    rmSync(this.#ballast, { force: true });
  }

  remove(): void {
    process.off('exit', this.#unmountAtExit);
    this.#unmount();
    rmdirSync(this.path);
  }

  get #ballast(): string {
    return join(this.path, 'ballast');
  }

  /** Also while something has a file open there. */
  #unmount(): void {
    execFileSync('umount', ['-l', this.path], { stdio: 'ignore' });
  }
}
