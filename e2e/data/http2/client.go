// Requests all files at once by HTTP/2 alone: client.go ORIGIN FOLDER
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

func get(client *http.Client, url, path string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 || response.ProtoMajor != 2 {
		return fmt.Errorf("%s: %s %s", url, response.Proto, response.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, response.Body)
	return err
}

func main() {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	if len(os.Args) < 3 {
		return
	}
	client := &http.Client{Transport: &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	names := []string{"large.bin"}
	for number := range 40 {
		names = append(names, fmt.Sprintf("%d.txt", number))
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if err := get(client, os.Args[1]+"/"+name, filepath.Join(os.Args[2], name)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		})
	}
	all.Wait()
}
