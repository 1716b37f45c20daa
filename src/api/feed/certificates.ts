import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { publicKey, readCertificate } from '../../certificates/certificate.js';
import { Statement } from '../../certificates/statement.js';
import type { Database } from '../../db/connection/database.js';
import { type CertificateRow, listCertificates, listSigningKeys } from '../../db/tables/certificates.js';
import { CompanyName, companyFilterOf, namedPage } from '../plumbing/company-names.js';
import { CompanySearchFilters, listQuery, pageOf, presentPage, ResourceName } from '../plumbing/models.js';
import { answers, operationsOf } from '../plumbing/operations.js';
import { watchMethods } from '../plumbing/request-checks.js';

const CertificateQuery = listQuery({
  ...CompanySearchFilters,
  resource: ResourceName.exactOptional(),
});

const Certificate = Statement.extend({
  id: z.string(),
  company_name: CompanyName,
  kid: z.string().describe('The key of /.well-known/jwks.json that signed it.'),
  jws: z.string().describe('The certificate itself: a compact JWS (RFC 7515). Its payload is the other members.'),
}).meta({ id: 'Certificate', description: 'A signed statement about one verified walk: docs/certificates.md.' });
export type CertificateModel = z.output<typeof Certificate>;

const KeySet = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        kid: z.string(),
        alg: z.literal('EdDSA'),
        use: z.literal('sig'),
      }),
    ),
  })
  .meta({ id: 'KeySet', description: 'A JWK set (RFC 7517, RFC 8037).' });

const { viewer } = operationsOf('changes');

export function certificateRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/certificates',
      viewer('listCertificates', 'List the certificates of verified walks, newest first', {
        description: 'Each verified walk has one, a few seconds after it ended.',
        querystring: CertificateQuery,
        response: { 200: pageOf(Certificate) },
      }),
      async ({ query }) =>
        namedPage(db, presentPage(await listCertificates(db, await companyFilterOf(db, query)), presentCertificate)),
    );
  };
}

/** This route takes no token: a person who checks a certificate has none, and a public key is no secret. */
export function signingKeyRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (app) => {
    const refuseOtherMethods = watchMethods(app);
    app.get(
      '/.well-known/jwks.json',
      {
        schema: {
          tags: ['changes'],
          security: [],
          operationId: 'listSigningKeys',
          summary: 'Show the public keys of every certificate',
          description: 'In the order in which they were made. No key is ever left out.',
          response: answers({ 200: KeySet }),
        },
      },
      async () => ({ keys: (await listSigningKeys(db)).map(publicKey) }),
    );
    refuseOtherMethods();
  };
}

function presentCertificate({ id, jws }: CertificateRow): CertificateModel {
  const { kid, statement } = readCertificate(jws);
  return { id: String(id), ...statement, kid, jws };
}
