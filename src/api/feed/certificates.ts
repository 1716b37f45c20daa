import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { publicKey, readCertificate } from '../../certificates/certificate.js';
import { Statement } from '../../certificates/statement.js';
import type { Database } from '../../db/connection/database.js';
import { type CertificateRow, listCertificates, listSigningKeys } from '../../db/tables/certificates.js';
import { CompanyName, namedPage } from '../plumbing/company-names.js';
import { answers, CompanyId, EnvironmentName, listQuery, pageOf, presentPage, ResourceName } from '../plumbing/models.js';
import { watchMethods } from '../plumbing/request-checks.js';

const CertificateQuery = listQuery({
  environment: EnvironmentName.exactOptional(),
  company_id: CompanyId.exactOptional(),
  resource: ResourceName.exactOptional(),
});

const Certificate = Statement.extend({
  id: z.string(),
  company_name: CompanyName,
  kid: z.string().meta({ description: 'Which of the keys of /.well-known/jwks.json signed it.' }),
  jws: z.string().meta({ description: 'The certificate itself: a compact JWS (RFC 7515), whose payload are the other members.' }),
}).meta({ id: 'Certificate', description: 'What is said, and signed, of one verified walk: docs/certificates.md.' });
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

export function certificateRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/certificates',
      {
        config: { role: 'viewer' },
        schema: {
          tags: ['changes'],
          operationId: 'listCertificates',
          summary: 'List what is certified of verified walks, newest first',
          description: 'Each verified walk has one, some seconds after it ended.',
          querystring: CertificateQuery,
          response: answers({ 200: pageOf(Certificate) }),
        },
      },
      async ({ query: { company_id, ...query } }) => {
        const filter = { ...query, ...(company_id && { companyId: company_id }) };
        return namedPage(db, presentPage(await listCertificates(db, filter), presentCertificate));
      },
    );
  };
}

/** Whoever checks a certificate has no token of ours, and a public key is no secret. */
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
          description: 'Those that signed the oldest first; none is ever left out.',
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
