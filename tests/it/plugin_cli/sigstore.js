// Signs an artifact of a registry with Sigstore's own library, as `cosign sign --key` does: a statement about the digest of its manifest, in
// a bundle that refers to it. Prints the public key. Arguments: the repository, the tag, the predicate type.
const crypto = require('node:crypto');
const { DSSEBundleBuilder } = require('@sigstore/sign');
const { bundleToJSON } = require('@sigstore/bundle');
const { attachArtifactToImage, getImageDigest } = require('@sigstore/oci');

const [imageName, imageTag, predicateType] = process.argv.slice(2);
const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
const der = publicKey.export({ type: 'spki', format: 'der' });
const pem = publicKey.export({ type: 'spki', format: 'pem' });
const hint = crypto.createHash('sha256').update(der).digest('base64');
const signer = {
  sign: async (data) => ({
    key: { $case: 'publicKey', publicKey: pem, hint },
    signature: crypto.sign('sha256', data, privateKey),
  }),
};

(async () => {
  const imageDigest = await getImageDigest({ imageName, imageTag });
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ digest: { sha256: imageDigest.replace('sha256:', '') } }],
    predicateType,
    predicate: {},
  };
  const builder = new DSSEBundleBuilder({ signer, witnesses: [] });
  const bundle = await builder.create({
    data: Buffer.from(JSON.stringify(statement)),
    type: 'application/vnd.in-toto+json',
  });
  await attachArtifactToImage({
    imageName,
    imageDigest,
    artifact: Buffer.from(JSON.stringify(bundleToJSON(bundle))),
    mediaType: bundle.mediaType,
    annotations: { 'dev.sigstore.bundle.predicateType': predicateType },
  });
  process.stdout.write(pem);
})();
