import { TokenKeeper } from '../../src/oauth/keeper.js';
import { type KeeperSettings, keeperParts } from './keeper-parts.js';

// Started by fork: answers each company_id with the token that it got, or with the code of the error.
const keeper = new TokenKeeper(keeperParts(JSON.parse(process.env.KEEPER ?? '{}') as KeeperSettings));
process.on('message', (companyId: string) => {
  keeper
    .sourceFor({ environment: 'test', companyId })
    .get()
    .then(
      ({ value }) => process.send?.({ token: value.reveal() }),
      (error: { code?: string }) => process.send?.({ error: error.code ?? String(error) }),
    );
});
process.send?.({ ready: true });
