// PORT FILTER [QOS]: a consumer that prints what SUBSCRIBE got, and each message.
const mqtt = require('mqtt')

const [port, filter, qos] = process.argv.slice(2)
const client = mqtt.connect(`mqtt://127.0.0.1:${port}`)
const subscribed = error => console.log(error ? 'refused' : 'subscribed')
client.on('message', (topic, payload) => console.log(payload.toString()))
if (qos) client.subscribe(filter, { qos: Number(qos) }, subscribed)
else client.subscribe(filter, subscribed)
