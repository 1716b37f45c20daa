/** Signs certificates as a worker does, and hangs for ever at the one whose number is the argument. The build must be fresh. */

import { signerOfSeed } from '../../dist/certificates/certificate.js';
import { certificateSweep } from '../../dist/certificates/certificate-sweep.js';
import { openDatabase } from '../../dist/db/connection/database.js';

const hangsAt = Number(process.argv[2]);
const signer = await signerOfSeed(Buffer.alloc(32, 9));
let count = 0;
const hanging = {
  ...signer,
  sign: (statement) => {
    if (++count < hangsAt) return signer.sign(statement);
    console.log('hangs');
    return new Promise(() => setInterval(() => {}, 60_000));
  },
};
await certificateSweep({
  db: openDatabase({ url: process.env.DATABASE_URL, poolSize: 2 }),
  signer: hanging,
  logger: { info() {} },
})();
