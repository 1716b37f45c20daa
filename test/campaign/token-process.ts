import { type TokenSettings, tokenRoom } from './token-room.js';

// Started by fork: answers each company_id with the token that it got, or with the code of the error.
const { manager } = tokenRoom(JSON.parse(process.env.TOKEN_SETTINGS ?? '{}') as TokenSettings);
process.on('message', (companyId: string) => {
  manager
    .sourceFor({ environment: 'test', companyId })
    .get()
    .then(
      (token) => process.send?.({ token: token.reveal() }),
      (error: { code?: string }) => process.send?.({ error: error.code ?? String(error) }),
    );
});
process.send?.({ ready: true });
