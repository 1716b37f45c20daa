import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Proxies, type ProxyAddress, readProxyAddress } from '../../src/http/proxy/proxies.js';
import { openS3Destination } from '../../src/warehouse/export/destinations/s3-destination.js';
import { anyPort } from '../support/port.js';
import { type ProxyServer, startProxy } from '../support/proxy-server.js';

// A real S3 is asked in test/machines/export-s3.test.ts; here it matters which way the requests go.

const { private: key, cert } = generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048, algorithm: 'sha256' });
const VARIABLES = {
  AWS_ACCESS_KEY_ID: 'exporter',
  AWS_SECRET_ACCESS_KEY: 's3-secret-of-the-exporter',
  AWS_REGION: 'eu-north-1',
  AWS_MAX_ATTEMPTS: '1',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
};

const stored = new Map<string, string>();
const s3: RequestListener = (request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    expect(request.headers['proxy-authorization']).toBeUndefined();
    stored.set(`${request.headers.host} ${request.url!.replace(/\?.*/, '')}`, Buffer.concat(parts).toString());
    response.writeHead(200, { etag: '"1"' }).end();
  });
};
let server: Server;
let proxy: ProxyServer;
beforeEach(async () => {
  stored.clear();
  proxy = await startProxy({ credentials: 'muster:secret' });
  Object.assign(process.env, VARIABLES);
});
afterEach(async () => {
  for (const name of [...Object.keys(VARIABLES), 'AWS_ENDPOINT_URL_S3']) delete process.env[name];
  server.close().closeAllConnections();
  await proxy.close();
});

async function listen(scheme: string): Promise<string> {
  server = (scheme === 'https' ? createTlsServer({ key, cert }, s3) : createServer(s3)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `localhost:${(server.address() as AddressInfo).port}`;
  process.env['AWS_ENDPOINT_URL_S3'] = `${scheme}://${host}`;
  return host;
}

async function put(proxies: Proxies): Promise<void> {
  const destination = await openS3Destination('s3://bucket/folder/a file.csv', { proxies });
  try {
    await destination.write(Buffer.from('the export'));
    await destination.finish({ text: 'the manifest', signed: undefined });
  } catch (error) {
    await destination.abort();
    throw error;
  }
}

function through(url: string): Proxies {
  const address = readProxyAddress(url) as ProxyAddress;
  return new Proxies({ https: address, http: address });
}

test.each(['https', 'http'])('an object is sent to S3 by %s through the proxy, and as it would be without', async (scheme) => {
  const host = await listen(scheme);
  const objects = new Map([
    [`${host} /bucket/folder/a%20file.csv`, 'the export'],
    [`${host} /bucket/folder/a%20file.csv.manifest.json`, 'the manifest'],
  ]);
  await put(new Proxies());
  expect(stored).toEqual(objects);
  expect(proxy.asked).toEqual([]);
  stored.clear();
  await put(through(proxy.url));
  expect(stored).toEqual(objects);
  const [first] = proxy.asked;
  expect(first).toMatch(scheme === 'https' ? `CONNECT ${host}` : `PUT http://${host}/bucket/folder/a%20file.csv`);
});

test('a proxy in the way fails the export', async () => {
  await listen('https');
  await expect(put(through(proxy.url.replace('secret', 'wrong')))).rejects.toMatchObject({ code: 'export_failed' });
  await expect(put(through(`http://127.0.0.1:${anyPort()}`))).rejects.toMatchObject({
    code: 'export_failed',
    message: expect.stringContaining('the proxy 127.0.0.1:') as string,
  });
  expect(stored.size).toBe(0);
});
