import { Secret } from '../../src/core/secret.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { Suppressions } from '../../src/privacy/suppressions.js';

const key = new Secret(Buffer.alloc(32, 7).toString('base64'));

/** Suppressions by one encryption key for all tests, as the processes of one installation have it. */
export const testSuppressions = new Suppressions(new Cipher(new Keyring([{ id: 'marks', key }])));
