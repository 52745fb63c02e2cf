// Command peer-go is net/http: two constant responses, and the files of a folder.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"runtime"
)

func constant(contentType, body string) http.HandlerFunc {
	bytes := []byte(body)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write(bytes)
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Println(runtime.Version())
		return
	}
	http.HandleFunc("/plaintext", constant("text/plain", "Hello, World!"))
	http.HandleFunc("/json", constant("application/json", `{"message":"Hello, World!"}`))
	http.Handle("/", http.FileServer(http.Dir(os.Args[2])))
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
