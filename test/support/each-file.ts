import { afterAll } from 'vitest';
import { scrubRegistered } from '../../src/observability/secret-registry.js';
import { makeHome, removeHome } from '../cli/run-muster.js';
import { killStarted } from './process.js';

// Files that share a process share its modules, and hooks of these are those of the first file alone. vitest reads this module again for each file.

/** Words of Muster's own texts that a test may take for a secret: in all later files they would be redacted. */
const WORDS = 'password, passphrase, authorization, client_secret, refresh_token, access_token, postgres';

makeHome();
afterAll(() => {
  killStarted();
  removeHome();
  if (scrubRegistered(WORDS) !== WORDS)
    throw new Error(`A secret of this file, or of one before it in its process, is a word of Muster: ${scrubRegistered(WORDS)}`);
});
