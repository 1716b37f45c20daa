import { Secret } from '../../src/core/secret.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { Marks } from '../../src/privacy/marks.js';

const key = new Secret(Buffer.alloc(32, 7).toString('base64'));

/** Marks by one encryption key for all tests, as the processes of one installation have it. */
export const testMarks = new Marks(new Cipher(new Keyring([{ id: 'marks', key }])));
