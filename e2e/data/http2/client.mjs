// Requests all files at once over one connection: client.mjs ORIGIN FOLDER
import { connect } from "node:http2";
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";

const [origin, folder] = process.argv.slice(2);
const session = connect(origin, { rejectUnauthorized: false });
const get = async (name) => {
    const request = session.request({ ":path": `/${name}` });
    const status = new Promise((resolve, reject) => {
        request.on("response", (head) => resolve(head[":status"]));
        request.on("error", reject);
    });
    await pipeline(request, createWriteStream(`${folder}/${name}`));
    if ((await status) !== 200) throw new Error(`${name}: ${await status}`);
};
const names = [...Array(40).keys()].map((number) => `${number}.txt`);
await Promise.all([...names, "large.bin"].map(get));
await new Promise((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())));
session.close();
